"""The worker: claims what it has room for, runs it in lanes, settles in batches, and stops within its limits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import structlog

from ulak.clock import Clock
from ulak.errors import Error
from ulak.spine import executor, probe
from ulak.spine.ahead import Ahead
from ulak.spine.attempt import Attempts
from ulak.spine.breaker import Breakers
from ulak.spine.claim import CLAIM_SUSPECTS, Claimed, Claimer, Demand, SuspectDemand
from ulak.spine.handler import Handlers
from ulak.spine.heat import Heat
from ulak.spine.job import Lease
from ulak.spine.lane import Lane, Runners
from ulak.spine.outcome import Cancel, Done, Outcome, Release, Retry, Settlement
from ulak.spine.settler import Settler
from ulak.spine.store import Store, Verb, closing_seconds
from ulak.spine.suspects import Suspects
from ulak.spine.telemetry import Telemetry
from ulak.spine.timers import Spare
from ulak.spine.underway import Running, Underway

log = structlog.get_logger("ulak.worker")

D = TypeVar("D")
R = TypeVar("R")

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a stop went. What is left stays leased and is rescued, as uncertain, at the next start."""

    finished: int
    released: int
    cancelled: int
    left: tuple[int, ...]
    seconds: float
    stuck: bool = False  # the store did not answer in time: what was under way there has an unknown outcome


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
        self._clock = clock
        self._telemetry = telemetry
        lane_room = {"async": concurrency, "thread": threads, "process": processes}
        self._underway = Underway(handlers, clock, telemetry, concurrency, lane_room)
        self.running = self._underway.running
        self._attempts = Attempts(handlers, clock, telemetry, breakers, lanes, self._end)
        self._runners: Runners[Running] = Runners(self._attempts.run)
        self.ahead = Ahead(clock, self._runners.put)
        self._settler = Settler(store, clock, telemetry, breakers, self._attempts.spoiled)
        self._heat = Heat(handlers)
        self._suspects = Suspects(store, handlers, clock, self._heat, self._underway, self._claim_suspects)
        self._claimer = Claimer()
        self._riding: asyncio.Future[Claimed | None] | None = None
        self._not_claiming = asyncio.Event()
        self._not_claiming.set()
        self._look_everywhere_at = 0.0
        self._wake = asyncio.Event()
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
                if not await self._claim_once():
                    await self._rest()
            except Error as error:
                log.warning("claim_failed", error=str(error))
                await self._clock.wait(self._wake, POLL_SECONDS)

    def _look_around(self) -> None:
        """Busy or not, everything is looked at once in a while."""
        now = self._clock.monotonic()
        if now >= self._look_everywhere_at:
            self._look_everywhere_at = now + POLL_SECONDS
            self._heat.add_all()
        self._suspects.look_around(now)

    async def _rest(self) -> None:
        """There is nothing to do. What becomes ready now is claimed by the commit that makes it so."""
        ride = self._ride()
        await self._clock.wait(self._wake, self._heat.rest_seconds(self._clock.monotonic(), POLL_SECONDS))
        if ride is not None:
            self._store.alight()
            await ride
            self._arrive(ride)  # its callback may still be waiting for its turn

    def _ride(self) -> asyncio.Future[Claimed | None] | None:
        demand = self._room()
        if demand is None:
            return None
        self._heat.look()
        self._not_claiming.clear()
        self._riding = ride = self._store.ride(self._claimer.riding, demand)
        ride.add_done_callback(self._arrive)
        return ride

    def _arrive(self, ride: asyncio.Future[Claimed | None]) -> None:
        """Begin what a ride has brought, at once and only once."""
        if ride is not self._riding:
            return
        self._riding = None
        self._not_claiming.set()
        if not ride.cancelled() and ride.exception() is None and (claimed := ride.result()) is not None:
            self._note(claimed)
            self._wake.set()

    def _note(self, claimed: Claimed) -> None:
        probe.reach("worker.claimed")
        self._heat.note(claimed, self._clock.monotonic())
        self._begin(claimed.leases)

    def _room(self) -> Demand | None:
        """For whatever kind of work may come now; None without room."""
        return None if self._busy() else self._underway.demand(self._store.owner, self._heat.rested())

    def spare(self) -> Spare | None:
        """Places for jobs that are not due yet."""
        demand = self._room()
        return None if demand is None else self.ahead.spare(demand)

    def _busy(self) -> bool:
        return self._stopping or self._settler.trouble

    async def _claim_once(self) -> bool:
        if self._settler.trouble:
            return False
        suspects = await self._suspects.claim() if self._heat.suspects else 0
        if self._busy():
            return suspects > 0
        demand = self._underway.demand(self._store.owner, self._heat.levels(self._clock.monotonic()))
        if demand is None:
            return suspects > 0
        probe.reach("worker.before_claim")
        self._heat.look()
        claimed = await self._take(self._claimer.verb, demand)
        self._note(claimed)
        return bool(claimed.leases) or claimed.expired > 0 or suspects > 0

    async def _take(self, verb: Verb[D, R], demand: D) -> R:
        """A claim that a stop can wait for: what comes of it must be handed back."""
        self._not_claiming.clear()
        try:
            return await self._store.submit(verb, demand)
        finally:
            self._not_claiming.set()

    async def _claim_suspects(self, demand: SuspectDemand) -> int:
        if self._stopping:
            return 0
        leases = await self._take(CLAIM_SUSPECTS, demand)
        self._begin(leases)
        return len(leases)

    # From the claim to the end

    def _begin(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._telemetry.count("claims", "")
        begun = self._underway.add(leases)
        if self._stopping:
            self._hand_back(begun)
        else:
            self.ahead.put(begun)

    def _end(self, running: Running, outcome: Outcome) -> None:
        if running.ended:
            return
        lease = running.lease
        resume = 0 if type(outcome) is Done else executor.resume_at(outcome, self._clock.now())
        running.ended = True
        if running.started is not None:
            running.times.run.observe(self._clock.monotonic() - running.started)
        self._settler.add(Settlement(lease.id, lease.epoch, lease.kind, lease.key, lease.attempt, outcome, resume))
        self._underway.remove(running)
        if lease.crashes:
            self._heat.suspects = True
        self._finished += 1
        self._wake.set()

    # Verdicts from outside

    def cancel(self, identifiers: list[int]) -> None:
        """Cancel attempts that run here; others are not ours to cancel."""
        wanted = set(identifiers)
        for running in list(self.running) if wanted else ():
            if running.lease.id in wanted and running.verdict is None:
                self._interrupt(running, Cancel("cancelled while running"))

    def watch(self) -> None:
        """End attempts that take longer than their kind allows."""
        now = self._clock.monotonic()
        for running in list(self.running):
            late = self._attempts.late(running, now)
            if late is not None:
                self._interrupt(running, late)

    def _interrupt(self, running: Running, verdict: Outcome) -> None:
        running.verdict = verdict
        if running.task is not None:
            running.task.cancel()
        if running.started is None or running.handler.lane != "async":
            self._end(running, verdict)  # it has not begun; or it is a thread, whose late result is ignored

    # Stopping

    async def stop(self, grace_seconds: float, cancel_seconds: float) -> StopReport:
        """Stop claiming, return what has not started, wait, cancel, wait again. Never longer than that."""
        began = self._clock.monotonic()
        finished_before = self._finished
        self._stopping = True
        self._wake.set()
        probe.reach("stop.before_release")
        waiting = self._runners.take_back() + self.ahead.take_back()
        self._store.alight()
        await self._clock.wait(self._not_claiming, grace_seconds)  # or that claim would take what is handed back
        self._hand_back(waiting)
        cancelled = 0
        if not await self._underway.drained(max(began + grace_seconds - self._clock.monotonic(), 0.0)):
            cancelled = len(self.running)
            for running in list(self.running):
                self._interrupt(running, Retry(0.0, "the worker was stopped"))
            await self._underway.drained(cancel_seconds)
        left = began + grace_seconds + cancel_seconds - self._clock.monotonic()
        await self._settler.close(closing_seconds(self._store, left))
        self._runners.close()
        unfinished = tuple(dict.fromkeys(running.lease.id for running in self.running))
        finished = self._finished - finished_before - self._released
        return StopReport(finished, self._released, cancelled, unfinished, self._clock.monotonic() - began)

    def _hand_back(self, waiting: list[Running]) -> None:
        """What was claimed and has not started goes back uncharged."""
        left = [running for running in waiting if not running.ended]
        self._released += len(left)
        for running in left:
            self._end(running, Release())
