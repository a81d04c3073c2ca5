"""The alarm: sleeps until the next timer is near, and makes ready the jobs that are due or due soon."""

from __future__ import annotations

import asyncio

from ulak.clock import Clock
from ulak.spine import probe
from ulak.spine.loops.worker import Worker
from ulak.spine.store import Store
from ulak.spine.units.timers import LOOK_AHEAD, PROMOTE_DUE, SLACK_MILLIS

MAX_SLEEP_SECONDS = 1.0  # a store that others write to is looked at every second all the same


class Alarm:
    def __init__(self, store: Store, clock: Clock, worker: Worker) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._look_at: int | None = None
        self._looking = asyncio.Lock()
        self._wake = asyncio.Event()

    def set(self, due_at: int) -> None:
        """Something becomes due then: look shortly before, if not earlier."""
        look_at = due_at - SLACK_MILLIS
        if self._look_at is None or look_at < self._look_at:
            self._look_at = look_at
            self._wake.set()

    def look(self) -> None:
        """Look at once: the clock was stepped."""
        self._wake.set()

    async def run(self) -> None:
        while True:
            probe.reach("timers.before_promote")
            self._wake.clear()
            self._look_at = None  # so that any deadline which is committed meanwhile is noticed
            self._look_at = await self._promote_slice()
            probe.reach("timers.promoted")
            await self._clock.wait(self._wake, self._pause_seconds())

    async def promote_due(self) -> None:
        """Make everything ready that is due now, slice by slice."""
        look_at = await self._promote_slice()
        while look_at is not None and look_at <= self._clock.now():
            look_at = await self._promote_slice()

    async def _promote_slice(self) -> int | None:
        async with self._looking:  # one at a time: the next one has to know what this one expects
            budget = self._worker.hold_budget()
            if budget is None:
                return await self._store.submit(PROMOTE_DUE, None)
            look = await self._store.submit(LOOK_AHEAD, budget)
            self._worker.held.expect(look, budget)
            return look.again_at

    def _pause_seconds(self) -> float:
        """Until the next one is near."""
        if self._look_at is None:
            return MAX_SLEEP_SECONDS
        return min(max(self._look_at - self._clock.now(), 0) / 1000, MAX_SLEEP_SECONDS)
