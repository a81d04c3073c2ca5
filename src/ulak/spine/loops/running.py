"""Attempts under way in this process, and how much more it may take."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from ulak.clock import Clock
from ulak.spine.handler import Handler, Handlers
from ulak.spine.job import Lease
from ulak.spine.loops.steering import Steering
from ulak.spine.outcome import Outcome
from ulak.spine.telemetry import Telemetry, Times
from ulak.spine.units.claim import Demand, Want

# Called by `map` for every job, without a turn of the interpreter.
_kind, _lane, _times, _lease = map(attrgetter, ("handler.kind", "handler.lane", "times", "lease"))
_crashes = attrgetter("crashes")


class Attempt(msgspec.Struct, eq=False):
    """An attempt under way in this process."""

    lease: Lease
    handler: Handler
    times: Times
    started: float | None = None
    task: asyncio.Task[Any] | None = None
    verdict: Outcome | None = None  # decided from outside: cancelled, timed out, stopping
    outcome: Outcome | None = None  # when it has ended
    finished: float = 0.0
    resume_at: int = 0
    uncertain: bool = False  # it was ended from outside, and may have had its effect
    lingers: bool = False  # it has ended, but its thread or process is not free yet
    trace: str | None = None  # of its span
    destination: str | None = None  # whose breaker hears of it


class RunningJobs:
    """The attempts that run in this process, and how much more it may take."""

    def __init__(
        self,
        handlers: Handlers,
        steering: Steering,
        clock: Clock,
        telemetry: Telemetry,
        concurrency: int,
        lanes: dict[str, int],
    ) -> None:
        self._handlers = handlers
        self._steering = steering
        self._clock = clock
        self._telemetry = telemetry
        self._concurrency = concurrency
        self._lanes = lanes
        # Attempts, not jobs: a job that was taken from here may come back while the lost attempt still runs.
        self.running: set[Attempt] = set()
        self.suspects = 0  # of these, jobs that were running when a process died
        self._per_kind: Counter[str] = Counter()
        self._per_lane: Counter[str] = Counter()
        self._wants: dict[str, Want] = {}
        self._wants_made_for = (0, 0)  # the number of handlers, and the steering's version
        self._quiet = asyncio.Event()

    def add(self, leases: list[Lease]) -> list[Attempt]:
        added: list[Attempt] = []
        for kind, alike in groupby(leases, attrgetter("kind")):
            handler, times = self._handlers.get(kind), self._telemetry.times(kind)
            assert handler is not None  # only kinds with a handler are asked for
            begun = [Attempt(lease, handler, times) for lease in alike]
            self._per_kind[kind] += len(begun)
            self._per_lane[handler.lane] += len(begun)
            added += begun
        self.suspects += _suspects(leases)
        self.running.update(added)
        return added

    def vacate(self, ended: list[Attempt]) -> int:
        """Give up the places of attempts that have ended; return how many were suspects."""
        for times, alike in groupby(ended, _times):
            times.run.observe_all([one.finished - one.started for one in alike if one.started is not None])
        self._per_kind -= Counter(map(_kind, ended))  # counted in C, unlike Counter.subtract
        self._per_lane -= Counter(map(_lane, ended))
        suspects = _suspects(map(_lease, ended))
        self.suspects -= suspects
        if not self.running:
            self._quiet.set()
        return suspects

    def linger(self, running: Attempt) -> None:
        """It is about to end, and its lane will be free only when the call itself comes back."""
        running.lingers = True
        self._per_lane[running.handler.lane] += 1

    def let_go(self, running: Attempt) -> None:
        self._per_lane[running.handler.lane] -= running.lingers
        running.lingers = False

    def demand(self, owner: int, levels: Mapping[str, tuple[int, ...]]) -> Demand | None:
        """Return the demand for the kinds and levels where there may be work; None without capacity."""
        if self.free <= 0:
            return None
        wants = tuple(
            Want(kind, free, hot, handler.rate_per_second, handler.lane)
            for kind, hot in levels.items()
            if (handler := self._handlers.get(kind)) is not None and (free := self.free_for(handler)) > 0
        )
        return Demand(owner, wants, self.free, self._free_lanes()) if wants else None

    def demand_of_any(self, owner: int, resting: Collection[str]) -> Demand | None:
        """Return the demand for whatever may become ready; None without capacity.

        It is asked for once a commit, so a kind of which nothing runs has its want kept: made anew for 29 kinds, they
        took 8 % of a job's CPU in `end_to_end`.
        """
        if self.free <= 0:
            return None
        wants = dict(self._wants_of_idle())
        for kind in self._per_kind:
            if (want := wants.get(kind)) is not None:
                wants[kind] = replace(want, free=want.free - self._per_kind[kind])
        lanes = self._free_lanes()
        fit = tuple(one for one in wants.values() if one.free > 0 and lanes[one.lane] > 0 and one.kind not in resting)
        return Demand(owner, fit, self.free, lanes) if fit else None

    def _wants_of_idle(self) -> dict[str, Want]:
        """Return the want of each kind as if nothing of it ran, as it is steered now."""
        if self._wants_made_for != (len(self._handlers), self._steering.changes):
            self._wants_made_for = (len(self._handlers), self._steering.changes)
            limits = [(handler, self._steering.limit(handler)) for handler in self._handlers]
            self._wants = {
                handler.kind: Want(handler.kind, limit, (), handler.rate_per_second, handler.lane)
                for handler, limit in limits
            }
        return self._wants

    def _free_lanes(self) -> dict[str, int]:
        return {lane: free - self._per_lane[lane] for lane, free in self._lanes.items()}

    @property
    def free(self) -> int:
        return self._concurrency - len(self.running)

    def free_for(self, handler: Handler) -> int:
        """How many more of this kind, as far as the kind and its lane go."""
        lane = handler.lane
        limit = self._steering.limit(handler)
        return min(limit - self._per_kind[handler.kind], self._lanes[lane] - self._per_lane[lane])

    def may_run(self, handler: Handler) -> bool:
        """Whether its kind is served here and not paused."""
        return self._steering.limit(handler) > 0

    async def drained(self, seconds: float | None) -> bool:
        """Wait until nothing runs here."""
        self._quiet.clear()
        return not self.running or await self._clock.wait(self._quiet, seconds)


def _suspects(leases: Iterable[Lease]) -> int:
    return sum(map(bool, map(_crashes, leases)))
