"""The worker: claims what it has room for, runs it in lanes, settles in batches, and stops within its limits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from ulak import codec
from ulak.clock import Clock
from ulak.errors import Error, Throttled, Transient
from ulak.spine import executor, probe
from ulak.spine.breaker import Breakers
from ulak.spine.claim import CLAIM_SUSPECTS, Claimed, Claimer, Demand, SuspectDemand, Want, alone_is_waiting
from ulak.spine.handler import Handler, Handlers
from ulak.spine.job import SUSPECT_LEVEL, Job, Lease, Priority
from ulak.spine.lane import Lane, Runners
from ulak.spine.outcome import Cancel, Done, Outcome, Release, Retry, Settlement, Snooze
from ulak.spine.settler import Settler
from ulak.spine.store import Store
from ulak.spine.telemetry import Telemetry

log = structlog.get_logger("ulak.worker")

LEVELS = tuple(int(level) for level in Priority)
_PRIORITIES = tuple(Priority)
POLL_SECONDS = 1.0
SUSPECTS_AT_ONCE = 8
ALONE_PATIENCE_SECONDS = 10.0
ALONE_REST_SECONDS = 1.0


class Running(msgspec.Struct, eq=False):
    """An attempt under way in this process."""

    lease: Lease
    handler: Handler
    started: float = 0.0
    task: asyncio.Task[Any] | None = None
    verdict: Outcome | None = None  # decided from outside: cancelled, timed out, stopping
    ended: bool = False


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a stop went. What is left stays leased and is rescued, as uncertain, at the next start."""

    finished: int
    released: int
    cancelled: int
    left: tuple[int, ...]
    seconds: float


class Worker:
    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        telemetry: Telemetry,
        breakers: Breakers,
        lanes: dict[str, Lane],
        concurrency: int,
        threads: int,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._telemetry = telemetry
        self._breakers = breakers
        self._lanes = lanes
        self._concurrency = concurrency
        self._lane_room = {"async": concurrency, "thread": threads, "process": concurrency}
        self._claimer = Claimer()
        self._runners: Runners[Running] = Runners(self._execute)
        self.running: dict[int, Running] = {}
        self._per_kind: defaultdict[str, int] = defaultdict(int)
        self._per_lane: defaultdict[str, int] = defaultdict(int)
        self._hot: set[tuple[str, int]] = set()
        self._resting: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._settler = Settler(store, clock, telemetry, breakers)
        self._suspects = True
        self._suspects_running = 0
        self._alone_not_before = 0.0
        self._stopping = False
        self._finished = 0

    # What there may be to do

    def heat(self, ready: set[tuple[str, int]]) -> None:
        """A commit made these (kind, priority) pairs ready."""
        for kind, prio in ready:
            if prio == SUSPECT_LEVEL:
                self._suspects = True
            elif self._handlers.get(kind) is not None:
                self._hot.add((kind, prio))
        self._wake.set()

    def heat_all(self) -> None:
        """Look everywhere: at the start, and once in a while, because a wake-up may have been lost."""
        self._hot.update((handler.kind, level) for handler in self._handlers for level in LEVELS)
        self._suspects = True
        self._wake.set()

    # Claiming

    async def run(self) -> None:
        self.heat_all()
        while not self._stopping:
            self._wake.clear()
            try:
                claimed_any = await self._claim_once()
            except Error as error:
                log.warning("claim_failed", error=str(error))
                claimed_any = False
                await self._clock.wait(self._wake, POLL_SECONDS)
            if not claimed_any and not self._stopping:
                await self._rest()

    async def _rest(self) -> None:
        now = self._clock.monotonic()
        pause = min([POLL_SECONDS, *(until - now for until in self._resting.values())])
        if not await self._clock.wait(self._wake, max(pause, 0.0)) and pause >= POLL_SECONDS:
            self.heat_all()
        now = self._clock.monotonic()
        for kind in [kind for kind, until in self._resting.items() if until <= now]:
            del self._resting[kind]
            self._hot.update((kind, level) for level in LEVELS)

    async def _claim_once(self) -> bool:
        suspects = await self._claim_suspects() if self._suspects and not self._settler.trouble else 0
        demand = None if self._settler.trouble else self._demand()
        if demand is None:
            return suspects > 0
        probe.reach("worker.before_claim")
        claimed = await self._store.submit(self._claimer.verb, demand)
        probe.reach("worker.claimed")
        self._note(claimed)
        self._begin(claimed.leases)
        return bool(claimed.leases) or suspects > 0

    def _demand(self) -> Demand | None:
        free = self._concurrency - len(self.running)
        if free <= 0 or not self._hot:
            return None
        levels: defaultdict[str, list[int]] = defaultdict(list)
        for kind, prio in self._hot:
            if kind not in self._resting:
                levels[kind].append(prio)
        wants = []
        for kind in sorted(levels, key=lambda name: self._per_kind[name]):
            room = min(free, self._room(kind))
            if room > 0:
                handler = self._handlers.get(kind)
                rate = handler.rate_per_second if handler else None
                wants.append(Want(kind, room, tuple(sorted(levels[kind])), rate))
                free -= room
        return Demand(self._store.owner, tuple(wants)) if wants else None

    def _room(self, kind: str) -> int:
        handler = self._handlers.get(kind)
        if handler is None:
            return 0
        return min(
            handler.concurrency - self._per_kind[kind], self._lane_room[handler.lane] - self._per_lane[handler.lane]
        )

    def _note(self, claimed: Claimed) -> None:
        self._hot.difference_update(claimed.dry)
        now = self._clock.monotonic()
        for kind, seconds in claimed.rate_wait_seconds.items():
            self._resting[kind] = now + seconds

    # Jobs that were running when a process died

    async def _claim_suspects(self) -> int:
        kinds = tuple(handler.kind for handler in self._handlers)
        number = SUSPECTS_AT_ONCE - self._suspects_running
        if number <= 0:
            return 0
        leases = await self._store.submit(CLAIM_SUSPECTS, SuspectDemand(self._store.owner, kinds, number, alone=False))
        if not leases and self._suspects_running == 0:
            self._suspects = False
            await self._claim_alone(kinds)
        self._suspects_running += len(leases)
        self._begin(leases)
        return len(leases)

    async def _claim_alone(self, kinds: tuple[str, ...]) -> None:
        """A job that died twice gets the process to itself: if it dies again, nobody else is to blame."""
        if self._clock.monotonic() < self._alone_not_before:
            return
        if not await self._store.read(alone_is_waiting):
            return
        if await self._drained(ALONE_PATIENCE_SECONDS):
            leases = await self._store.submit(CLAIM_SUSPECTS, SuspectDemand(self._store.owner, kinds, 1, alone=True))
            self._suspects_running += len(leases)
            self._begin(leases)
            await self._drained(None)
        self._alone_not_before = self._clock.monotonic() + ALONE_REST_SECONDS

    async def _drained(self, seconds: float | None) -> bool:
        """Wait until nothing runs here."""
        self._quiet.clear()
        return not self.running or await self._clock.wait(self._quiet, seconds)

    # Running

    def _begin(self, leases: list[Lease]) -> None:
        if not leases:
            return
        begun = []
        for lease in leases:
            handler = self._handlers.get(lease.kind)
            assert handler is not None  # only kinds with a handler are asked for
            running = Running(lease, handler)
            self.running[lease.id] = running
            self._per_kind[lease.kind] += 1
            self._per_lane[handler.lane] += 1
            begun.append(running)
        self._runners.put(begun)

    async def _execute(self, running: Running, task: asyncio.Task[Any]) -> None:
        lease, handler = running.lease, running.handler
        running.started = self._clock.monotonic()
        running.task = task
        now = self._clock.now()
        self._observe_wait(lease, now)
        if handler.breaker is not None and (stop := self._stopped_by_breaker(handler, lease, now)) is not None:
            self._end(running, stop)
            return
        job = Job(
            lease.id,
            lease.kind,
            codec.decode(lease.payload),
            lease.attempt,
            lease.epoch,
            lease.key,
            _PRIORITIES[lease.prio],
            lease.crashes,
            lease.accepted_at,
            now,
        )
        probe.reach("worker.before_handler")
        try:
            returned = await (
                handler.call(job) if handler.lane == "async" else self._lanes[handler.lane].run(handler, job)
            )
            outcome = (
                Done(returned) if returned is None else executor.bounded(executor.answered(returned), handler, job)
            )
            if handler.breaker is not None and job.key is not None:
                self._breakers.succeeded(job.key)
        except asyncio.CancelledError:
            if running.verdict is None:
                raise
            executor.stopped(running.task)
            outcome = running.verdict
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            self._note_failure(handler, job, error)
            outcome = executor.failed(error, handler, job)
        probe.reach("worker.after_handler")
        self._end(running, outcome)

    def _note_failure(self, handler: Handler, job: Job, error: Exception) -> None:
        self._telemetry.count("job_failures", handler.kind, executor.error_class(error))
        log.info("attempt_failed", kind=job.kind, job=job.id, attempt=job.attempt, error=executor.describe(error))
        reached = not isinstance(error, Transient | Throttled | OSError | TimeoutError)
        if handler.breaker is not None and job.key is not None and not reached:
            self._breakers.failed(job.key, handler.breaker, self._clock.now())

    def _stopped_by_breaker(self, handler: Handler, lease: Lease, now: int) -> Snooze | None:
        breaker = None if lease.key is None else self._breakers.admit(lease.key, now)
        if breaker is None:
            return None
        self._telemetry.count("breaker_stops", handler.kind)
        pause = max(breaker.until_at - now, 100) / 1000
        return Snooze(pause, f"the breaker of its destination is {breaker.state}")

    def _observe_wait(self, lease: Lease, now: int) -> None:
        times = self._telemetry.times(lease.kind)
        times.wait.observe((now - lease.due_at) / 1000)
        if lease.due_at > lease.accepted_at and lease.attempt == 1:
            times.lateness.observe((now - lease.due_at) / 1000)
        if lease.crashes:
            self._telemetry.count("duplicate_runs", lease.kind)

    # Settling

    def _end(self, running: Running, outcome: Outcome) -> None:
        if running.ended:
            return
        running.ended = True
        lease = running.lease
        self._telemetry.times(lease.kind).run.observe(self._clock.monotonic() - running.started)
        resume = 0 if type(outcome) is Done else executor.resume_at(outcome, self._clock.now())
        self._settler.add(Settlement(lease.id, lease.epoch, lease.kind, lease.key, lease.attempt, outcome, resume))
        self._forget(running)

    def _forget(self, running: Running) -> None:
        lease = running.lease
        del self.running[lease.id]
        self._per_kind[lease.kind] -= 1
        self._per_lane[running.handler.lane] -= 1
        if lease.crashes:
            self._suspects_running -= 1
        self._finished += 1
        if not self.running:
            self._quiet.set()
        self._wake.set()

    # Verdicts from outside

    def cancel(self, identifiers: list[int]) -> None:
        """Cancel attempts that run here; others are not ours to cancel."""
        for identifier in identifiers:
            running = self.running.get(identifier)
            if running is not None:
                self._interrupt(running, Cancel("cancelled while running"))

    def watch(self) -> None:
        """End attempts that take longer than their kind allows."""
        now = self._clock.monotonic()
        for running in list(self.running.values()):
            if running.started and now - running.started > running.handler.timeout_seconds and running.verdict is None:
                self._telemetry.count("jobs_timed_out", running.lease.kind)
                late = Transient(f"took longer than {running.handler.timeout_seconds} s")
                job = Job(
                    running.lease.id,
                    running.lease.kind,
                    None,
                    running.lease.attempt,
                    running.lease.epoch,
                    running.lease.key,
                )
                self._note_failure(running.handler, job, late)
                self._interrupt(running, executor.failed(late, running.handler, job))

    def _interrupt(self, running: Running, verdict: Outcome) -> None:
        running.verdict = verdict
        if running.task is not None:
            running.task.cancel()
        if running.handler.lane != "async":
            self._end(running, verdict)  # a thread can't be stopped; its late result is ignored

    # Stopping

    async def stop(self, grace_seconds: float, cancel_seconds: float) -> StopReport:
        """Stop claiming, return what has not started, wait, cancel, wait again. Never longer than that."""
        began = self._clock.monotonic()
        self._stopping = True
        self._wake.set()
        finished_before = self._finished
        released = self._release_waiting()
        cancelled = 0
        if not await self._drained(grace_seconds):
            cancelled = len(self.running)
            for running in list(self.running.values()):
                self._interrupt(running, Retry(0.0, "the worker was stopped"))
            await self._drained(cancel_seconds)
        await self._settler.flushed()
        self._runners.close()
        left = tuple(self.running)
        finished = self._finished - finished_before - released
        return StopReport(finished, released, cancelled, left, self._clock.monotonic() - began)

    def _release_waiting(self) -> int:
        probe.reach("stop.before_release")
        waiting = self._runners.take_back()
        for running in waiting:
            self._end(running, Release())
        return len(waiting)
