"""The worker: begins what its claimer claims, runs it in lanes, has it settled, and stops within its limits.

Claimer ──leases──▶ Worker._begin ──▶ HeldJobs ──when due──▶ Runners ──▶ AttemptRunner.run ──▶ handler
   ▲                     │                                                    │
   │ free                ▼                                                    ▼
   └──────────── RunningJobs ◀── Worker._end ◀─────────── outcome ────────────┘
                                    └──▶ Settler ──SETTLE──▶ store
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from ulak.clock import Clock
from ulak.spine import probe
from ulak.spine.breaker import Breakers
from ulak.spine.handler import Handlers
from ulak.spine.job import Lease
from ulak.spine.lane import Lane
from ulak.spine.loops import classify
from ulak.spine.loops.attempt_runner import AttemptRunner
from ulak.spine.loops.claimer import Claimer
from ulak.spine.loops.destinations import DestinationGuard
from ulak.spine.loops.held import HeldJobs
from ulak.spine.loops.runners import Runners
from ulak.spine.loops.running import Attempt, RunningJobs
from ulak.spine.loops.settler import Settler
from ulak.spine.loops.steering import Steering
from ulak.spine.outcome import DONE, Cancel, Outcome, Release, Retry, Settlement
from ulak.spine.store import Store, closing_seconds
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.timers import HoldBudget

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a stop went. Jobs that are left stay leased and are rescued, as uncertain, at the next start.

    `finished` counts the attempts that ended since the worker was started.
    """

    finished: int
    released: int
    cancelled: int
    left: tuple[int, ...]
    seconds: float
    stuck: bool = False  # the store did not answer in time: the outcome of its last work is unknown


class Worker:
    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        steering: Steering,
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
        lane_free = {"async": concurrency, "thread": threads, "process": processes}
        self._running_jobs = RunningJobs(handlers, steering, clock, telemetry, concurrency, lane_free)
        self.running = self._running_jobs.running
        self._attempts = AttemptRunner(
            store, handlers, clock, telemetry, DestinationGuard(breakers, clock, telemetry), lanes, self._end
        )
        traced = telemetry.tracer.enabled
        self._runners: Runners[Attempt] = Runners(self._attempts.run_traced if traced else self._attempts.run)
        self.held = HeldJobs(clock, self._runners.put)
        self._settler = Settler(store, clock, telemetry, breakers, self._attempts.spoiled)
        self.claimer = Claimer(store, handlers, clock, self._running_jobs, self._settler, self._begin)
        self._ended: list[Attempt] = []  # in this turn of the event loop
        self._finished = 0
        self._released = 0

    def hold_budget(self) -> HoldBudget | None:
        """Places for jobs that are not due yet."""
        demand = self.claimer.free()
        return None if demand is None else self.held.budget(demand)

    # From the claim to the end

    def _begin(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._telemetry.count("claims", "")
        begun = self._running_jobs.add(leases)
        if self.claimer.stopping:
            self._hand_back(begun)
        else:
            self.held.put(begun)

    def _end(self, running: Attempt, outcome: Outcome) -> None:
        if running.outcome is not None:
            if running.lingers:
                self._running_jobs.let_go(running)
                self.claimer.note_free(suspects=False)
            return
        running.outcome = outcome
        if outcome is not DONE:
            running.resume_at = classify.resume_at(outcome, self._clock.now())
        running.finished = self._clock.monotonic()
        self.running.remove(running)
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._close_books)
        self._ended.append(running)

    def _close_books(self) -> None:
        """Settle, count and make capacity once for all attempts that have ended in the same turn of the event loop."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        self._finished += len(ended)
        self._settler.add(_settlements(ended))
        suspects = self._running_jobs.vacate(ended)
        self.claimer.note_free(suspects > 0)

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

    def _interrupt(self, running: Attempt, verdict: Outcome) -> None:
        running.verdict = verdict
        if running.task is not None:
            running.task.cancel()
        if running.started is None:
            self._end(running, verdict)
        elif running.handler.lane != "async":  # a thread goes on, and its late result is ignored; a process is killed
            running.uncertain = True
            self._running_jobs.linger(running)
            self._end(running, verdict)

    # Stopping

    async def stop(self, grace_seconds: float, cancel_seconds: float) -> StopReport:
        """Stop claiming, hand back jobs that have not started, wait, cancel, wait again; all within the limits.

        The limits hold in real time too: nobody moves a manual clock any more while its test waits here.
        """
        began = self._clock.monotonic()
        self._close_books()
        probe.reach("stop.before_release")
        waiting = self._runners.take_back() + self.held.take_back()
        await _within(grace_seconds, self.claimer.stop(grace_seconds))
        self._hand_back(waiting)
        cancelled = 0
        grace_left = max(began + grace_seconds - self._clock.monotonic(), 0.0)
        if not await _within(grace_left, self._running_jobs.drained(grace_left)):
            # A thread can't be cancelled. To try its job again while it goes on would be to run it twice, unmarked.
            stoppable = [running for running in self.running if running.handler.lane != "thread"]
            cancelled = len(stoppable)
            for running in stoppable:
                self._interrupt(running, Retry(0.0, "the worker was stopped"))
            await _within(cancel_seconds, self._running_jobs.drained(cancel_seconds))
        self._close_books()
        left = began + grace_seconds + cancel_seconds - self._clock.monotonic()
        await self._settler.close(closing_seconds(self._store, left))
        self._attempts.closing = True
        self._runners.close()
        unfinished = tuple(dict.fromkeys(running.lease.id for running in self.running))
        finished = self._finished - self._released
        return StopReport(finished, self._released, cancelled, unfinished, self._clock.monotonic() - began)

    def _hand_back(self, waiting: list[Attempt]) -> None:
        """Give attempts that have not started back, uncharged."""
        left = [running for running in waiting if running.outcome is None]
        self._released += len(left)
        for running in left:
            self._end(running, Release())


async def _within(seconds: float, waiting: Awaitable[T]) -> T | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await waiting
    return None


def _settlements(ended: list[Attempt]) -> list[Settlement]:
    return [
        Settlement(
            lease.id,
            lease.epoch,
            lease.kind,
            lease.key,
            lease.attempt,
            outcome,
            running.resume_at,
            running.uncertain,
        )
        for running in ended
        for lease, outcome in [(running.lease, running.outcome)]
        if outcome is not None  # which all that have ended have
    ]
