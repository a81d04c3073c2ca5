"""Jobs that were claimed ahead of their time: held here and started when due, a moment later but never before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from operator import attrgetter

from ulak.clock import Clock
from ulak.spine.job import Lease
from ulak.spine.loops.running import Attempt
from ulak.spine.units.claim import Demand
from ulak.spine.units.timers import HoldBudget, Limits, Look, budget_of, limits_of

_due_at = attrgetter("lease.due_at")


def _was_deferred(lease: Lease) -> bool:
    """Return whether a job was deferred. Others are not held: another process's clock may be ahead of this one."""
    return lease.due_at > lease.accepted_at


class HeldJobs:
    """Starts due attempts at once and holds the others until they are due. One task waits while any are held."""

    def __init__(self, clock: Clock, start: Callable[[list[Attempt]], None]) -> None:
        self._clock = clock
        self._start = start
        self._held: list[tuple[int, int, int, Attempt]] = []  # a heap by due time; id and epoch break ties
        self._expected: dict[int, tuple[int, Limits]] = {}  # made ready for this worker, by id, and not yet claimed
        self._changed = asyncio.Event()
        self._waiting: asyncio.Task[None] | None = None

    def put(self, begun: list[Attempt]) -> None:
        now = self._clock.now()
        if max(map(_due_at, begun), default=now) <= now:  # the usual case, without a look at each
            self._start(begun)
            return
        early = {one for one in begun if one.lease.due_at > now and _was_deferred(one.lease)}
        due = [one for one in begun if one not in early]
        if due:
            self._start(due)
        if early:
            self._hold(early)

    def _hold(self, early: Iterable[Attempt]) -> None:
        for one in early:
            lease = one.lease
            self._expected.pop(lease.id, None)
            heappush(self._held, (lease.due_at, lease.id, lease.epoch, one))
        self._wait()

    def _wait(self) -> None:
        self._changed.set()
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.get_running_loop().create_task(self._run(), name="ulak-held")

    async def _run(self) -> None:
        while self._held:
            self._changed.clear()
            await self._clock.wait(self._changed, (self._held[0][0] - self._clock.now()) / 1000)
            self.start_due()

    def start_due(self) -> None:
        """Start the attempts that are due: none yet if the event loop's timer went off a little early."""
        now = self._clock.now()
        due = []
        while self._held and self._held[0][0] <= now:
            due.append(heappop(self._held)[-1])
        if due:
            self._start(due)

    def attempts(self) -> list[Attempt]:
        """Return the attempts that are held, without those that were cancelled meanwhile."""
        return [one for *_, one in self._held if one.outcome is None]

    def expect(self, look: Look, budget: HoldBudget) -> None:
        """Set capacity aside for jobs that a look has made ready, until they are claimed: another must not use it."""
        self._expected |= {identifier: (due_at, budget.needs[kind]) for identifier, due_at, kind in look.soon}

    def budget(self, demand: Demand) -> HoldBudget:
        """Return the places for early jobs that a worker with this demand has."""
        now = self._clock.now()
        # A job that is due by now and has not come was claimed by another worker, or is no longer early.
        self._expected = {one: (due_at, limits) for one, (due_at, limits) in self._expected.items() if due_at > now}
        held = (limits_of(one.handler.lane, one.lease.kind) for one in self.attempts())
        return budget_of(demand, held, (limits for _, limits in self._expected.values()))

    def take_back(self) -> list[Attempt]:
        """Return the attempts that have not been started, and forget them."""
        left = [one for *_, one in sorted(self._held)]
        self._held.clear()
        self._changed.set()
        return left
