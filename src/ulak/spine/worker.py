"""The worker: claims what it has room for, runs it in lanes, settles in batches, and stops within its limits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import structlog

from ulak import codec
from ulak.clock import Clock
from ulak.errors import Conflict, Error, Permanent, Throttled, Transient
from ulak.spine import executor, probe
from ulak.spine.breaker import Breakers
from ulak.spine.claim import CLAIM_SUSPECTS, Claimer, Demand, SuspectDemand, Want, alone_is_waiting
from ulak.spine.handler import Handler, Handlers
from ulak.spine.heat import Heat
from ulak.spine.job import Job, Lease, Priority
from ulak.spine.lane import Lane, Runners
from ulak.spine.outcome import Cancel, Done, Outcome, Release, Retry, Settlement, Snooze
from ulak.spine.settler import Settler
from ulak.spine.store import Store, Verb
from ulak.spine.telemetry import Telemetry
from ulak.spine.timers import PROMOTE_DUE, promoting

log = structlog.get_logger("ulak.worker")

D = TypeVar("D")
R = TypeVar("R")

_PRIORITIES = tuple(Priority)
POLL_SECONDS = 1.0
SUSPECTS_AT_ONCE = 8
ALONE_PATIENCE_SECONDS = 10.0
ALONE_REST_SECONDS = 1.0
ALONE_RETRY_SECONDS = 60.0  # after waiting in vain for quiet, so that the others get most of the time


class Running(msgspec.Struct, eq=False):
    """An attempt under way in this process."""

    lease: Lease
    handler: Handler
    started: float | None = None
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
        processes: int,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._telemetry = telemetry
        self._breakers = breakers
        self._lanes = lanes
        self._concurrency = concurrency
        self._lane_room = {"async": concurrency, "thread": threads, "process": processes}
        self._claimer = Claimer()
        self._promoting = promoting(self._claimer)
        self._claiming = asyncio.Lock()  # one claim at a time, or two would fill the same room
        self._runners: Runners[Running] = Runners(self._execute)
        # By (id, epoch): a job that was taken from this process may come back to it while the lost attempt still runs.
        self.running: dict[tuple[int, int], Running] = {}
        self._per_kind: defaultdict[str, int] = defaultdict(int)
        self._per_lane: defaultdict[str, int] = defaultdict(int)
        self._heat = Heat(handlers)
        self._look_everywhere_at = 0.0
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._not_claiming = asyncio.Event()
        self._not_claiming.set()
        self._settler = Settler(store, clock, telemetry, breakers, self._spoiled)
        self._suspects_running = 0
        self._alone_at: float | None = None  # when to try again to run one alone; None when none waits
        self._stopping = False
        self._finished = 0
        self._released = 0

    # What there may be to do

    def heat(self, ready: set[tuple[str, int]]) -> None:
        """A commit made these (kind, priority) pairs ready."""
        self._heat.add(ready)
        self._wake.set()

    def heat_all(self) -> None:
        """Look everywhere: at the start, and once in a while, because a wake-up may have been lost."""
        self._heat.add_all()
        self._wake.set()

    def rests(self, kind: str) -> bool:
        """Whether work of this kind has to wait for its rate."""
        return self._heat.rests(kind, self._clock.monotonic())

    # Claiming

    async def run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            self._look_around()
            try:
                async with self._claiming:
                    claimed_any = await self._claim_once()
            except Error as error:
                log.warning("claim_failed", error=str(error))
                claimed_any = False
                await self._clock.wait(self._wake, POLL_SECONDS)
            if not claimed_any and not self._stopping:
                now = self._clock.monotonic()
                await self._clock.wait(self._wake, self._heat.rest_seconds(now, POLL_SECONDS))

    def _look_around(self) -> None:
        """Busy or not, everything is looked at once in a while."""
        now = self._clock.monotonic()
        if now >= self._look_everywhere_at:
            self._look_everywhere_at = now + POLL_SECONDS
            self._heat.add_all()
        if self._alone_at is not None and now >= self._alone_at:
            self._heat.suspects = True

    async def promote(self) -> int | None:
        """Make due jobs ready, and take them along if no other claim is under way; answers the next deadline."""
        if self._claiming.locked():
            return await self._store.submit(PROMOTE_DUE, None)
        async with self._claiming:
            demand = None if self._busy() else self._demand(self._heat.rested())
            if demand is None:
                return await self._store.submit(PROMOTE_DUE, None)
            promoted = await self._take(self._promoting, demand)
            self._heat.note(promoted.claimed, self._clock.monotonic())
            self._begin(promoted.claimed.leases)
        return promoted.next_due_at

    def _busy(self) -> bool:
        return self._stopping or self._settler.trouble

    async def _claim_once(self) -> bool:
        if self._settler.trouble:
            return False
        suspects = await self._claim_suspects() if self._heat.suspects else 0
        demand = None if self._busy() else self._demand(self._heat.levels(self._clock.monotonic()))
        if demand is None:
            return suspects > 0
        probe.reach("worker.before_claim")
        self._heat.look()
        claimed = await self._take(self._claimer.verb, demand)
        probe.reach("worker.claimed")
        self._heat.note(claimed, self._clock.monotonic())
        self._begin(claimed.leases)
        return bool(claimed.leases) or claimed.expired > 0 or suspects > 0

    async def _take(self, verb: Verb[D, R], demand: D) -> R:
        """A claim that a stop can wait for: what comes of it must be handed back."""
        self._not_claiming.clear()
        try:
            return await self._store.submit(verb, demand)
        finally:
            self._not_claiming.set()

    def _demand(self, levels: Mapping[str, tuple[int, ...]]) -> Demand | None:
        free = self._concurrency - len(self.running)
        if free <= 0:
            return None
        wants = []
        for kind, hot in levels.items():
            handler, room = self._handlers.get(kind), self._room(kind)
            if handler is not None and room > 0:
                wants.append(Want(kind, room, hot, handler.rate_per_second, handler.lane))
        lanes = {lane: room - self._per_lane[lane] for lane, room in self._lane_room.items()}
        return Demand(self._store.owner, tuple(wants), free, lanes) if wants else None

    def _room(self, kind: str) -> int:
        handler = self._handlers.get(kind)
        if handler is None:
            return 0
        return min(
            handler.concurrency - self._per_kind[kind], self._lane_room[handler.lane] - self._per_lane[handler.lane]
        )

    # Jobs that were running when a process died

    async def _claim_suspects(self) -> int:
        rooms = {handler.kind: room for handler in self._handlers if (room := self._room(handler.kind)) > 0}
        free = self._concurrency - len(self.running)
        number = min(SUSPECTS_AT_ONCE - self._suspects_running, free, *rooms.values()) if rooms else 0
        if number <= 0:
            return 0
        self._heat.suspects = False
        demand = SuspectDemand(self._store.owner, tuple(rooms), number, alone=False)
        leases = await self._take(CLAIM_SUSPECTS, demand)
        self._begin(leases)
        if leases:
            self._heat.suspects = True
        elif self._suspects_running == 0:
            await self._claim_alone()
        return len(leases)

    async def _claim_alone(self) -> None:
        """A job that died twice gets the process to itself: if it dies again, nobody else is to blame."""
        now = self._clock.monotonic()
        if self._alone_at is not None and now < self._alone_at:
            return
        kinds = tuple(handler.kind for handler in self._handlers)
        self._alone_at = None
        if not await self._store.read(alone_is_waiting, kinds):
            return
        if await self._drained(ALONE_PATIENCE_SECONDS) and not self._stopping:
            self._begin(await self._take(CLAIM_SUSPECTS, SuspectDemand(self._store.owner, kinds, 1, alone=True)))
            await self._drained(None)
            self._alone_at = self._clock.monotonic() + ALONE_REST_SECONDS
        else:
            self._alone_at = self._clock.monotonic() + ALONE_RETRY_SECONDS

    async def _drained(self, seconds: float | None) -> bool:
        """Wait until nothing runs here."""
        self._quiet.clear()
        return not self.running or await self._clock.wait(self._quiet, seconds)

    # Running

    def _begin(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._telemetry.count("claims", "")
        begun = []
        for lease in leases:
            handler = self._handlers.get(lease.kind)
            assert handler is not None  # only kinds with a handler are asked for
            running = Running(lease, handler)
            self.running[lease.id, lease.epoch] = running
            self._per_kind[lease.kind] += 1
            self._per_lane[handler.lane] += 1
            self._suspects_running += bool(lease.crashes)
            begun.append(running)
        if self._stopping:
            self._hand_back(begun)
        else:
            self._runners.put(begun)

    async def _execute(self, running: Running, task: asyncio.Task[Any]) -> None:
        lease, handler = running.lease, running.handler
        if running.verdict is not None:  # cancelled while it waited for its turn
            self._end(running, running.verdict)
            return
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
        outcome = await self._call(running, handler, job, task)
        probe.reach("worker.after_handler")
        self._end(running, outcome)

    async def _call(self, running: Running, handler: Handler, job: Job, task: asyncio.Task[Any]) -> Outcome:
        """Run the handler; whatever becomes of it is an outcome."""
        try:
            returned = await (
                handler.call(job) if handler.lane == "async" else self._lanes[handler.lane].run(handler, job)
            )
            if handler.breaker is not None and job.key is not None:
                self._breakers.succeeded(job.key)
            return Done() if returned is None else executor.bounded(executor.answered(returned), handler, job)
        except asyncio.CancelledError:
            if running.verdict is not None:
                return running.verdict
            if task.cancelling():
                raise  # the runner itself is being ended
            return self._failed(handler, job, Transient("something that the handler waited for was cancelled"))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt
            return self._failed(handler, job, error)
        finally:
            if running.verdict is not None:
                executor.stopped(task)

    def _failed(self, handler: Handler, job: Job, error: Exception) -> Outcome:
        self._note_failure(handler, job, error)
        return executor.failed(error, handler, job)

    def _note_failure(self, handler: Handler, job: Job, error: Exception) -> None:
        self._telemetry.count("job_failures", handler.kind, executor.error_class(error))
        log.info("attempt_failed", kind=job.kind, job=job.id, attempt=job.attempt, error=executor.describe(error))
        if handler.breaker is not None and job.key is not None:
            if isinstance(error, Transient | Throttled | OSError | TimeoutError):
                self._breakers.failed(job.key, handler.breaker, self._clock.now())
            else:  # the destination was reached and answered
                self._breakers.succeeded(job.key)

    def _stopped_by_breaker(self, handler: Handler, lease: Lease, now: int) -> Snooze | None:
        breaker = None if lease.key is None else self._breakers.admit(lease.key, now)
        if breaker is None:
            return None
        self._telemetry.count("breaker_stops", handler.kind)
        return Snooze(breaker.pause_seconds(now), f"the breaker of its destination is {breaker.state}")

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
        if running.started is not None:
            self._telemetry.times(lease.kind).run.observe(self._clock.monotonic() - running.started)
        resume = 0 if type(outcome) is Done else executor.resume_at(outcome, self._clock.now())
        self._settler.add(Settlement(lease.id, lease.epoch, lease.kind, lease.key, lease.attempt, outcome, resume))
        self._forget(running)

    def _spoiled(self, one: Settlement, error: Exception) -> Settlement:
        """The store could not keep what the handler answered: a failed attempt, for this job alone."""
        handler = self._handlers.get(one.kind)
        assert handler is not None  # it has just run
        job = Job(one.id, one.kind, None, one.attempt, one.epoch, one.key)
        answer_is_sound = isinstance(one.outcome, Done)  # then its unit raised, and may not the next time
        failure = error if answer_is_sound else Permanent(executor.describe(error))
        outcome = self._failed(handler, job, failure)
        resume = executor.resume_at(outcome, self._clock.now())
        uncertain = isinstance(one.outcome, Done) and one.outcome.unit is None and isinstance(error, Conflict)
        return Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, outcome, resume, uncertain)

    def _forget(self, running: Running) -> None:
        lease = running.lease
        del self.running[lease.id, lease.epoch]
        self._per_kind[lease.kind] -= 1
        self._per_lane[running.handler.lane] -= 1
        if lease.crashes:
            self._suspects_running -= 1
            self._heat.suspects = True
        self._finished += 1
        if not self.running:
            self._quiet.set()
        self._wake.set()

    # Verdicts from outside

    def cancel(self, identifiers: list[int]) -> None:
        """Cancel attempts that run here; others are not ours to cancel."""
        wanted = set(identifiers)
        for running in list(self.running.values()) if wanted else ():
            if running.lease.id in wanted and running.verdict is None:
                self._interrupt(running, Cancel("cancelled while running"))

    def watch(self) -> None:
        """End attempts that take longer than their kind allows."""
        now = self._clock.monotonic()
        for running in list(self.running.values()):
            if running.started is None or running.verdict is not None:
                continue
            if now - running.started > running.handler.timeout_seconds:
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
                self._interrupt(running, self._failed(running.handler, job, late))

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
        finished_before = self._finished
        self._stopping = True
        self._wake.set()
        probe.reach("stop.before_release")
        self._hand_back(self._runners.take_back())
        await self._clock.wait(self._not_claiming, grace_seconds)
        cancelled = 0
        if not await self._drained(max(began + grace_seconds - self._clock.monotonic(), 0.0)):
            cancelled = len(self.running)
            for running in list(self.running.values()):
                self._interrupt(running, Retry(0.0, "the worker was stopped"))
            await self._drained(cancel_seconds)
        await self._settler.close()
        self._runners.close()
        left = tuple(dict.fromkeys(identifier for identifier, _ in self.running))
        finished = self._finished - finished_before - self._released
        return StopReport(finished, self._released, cancelled, left, self._clock.monotonic() - began)

    def _hand_back(self, waiting: list[Running]) -> None:
        """What was claimed and has not started goes back uncharged."""
        self._released += len(waiting)
        for running in waiting:
            self._end(running, Release())
