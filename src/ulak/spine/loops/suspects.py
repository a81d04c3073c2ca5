"""Suspects: jobs that were running when a process died. They run a few at a time; after two deaths a job runs alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ulak.clock import Clock
from ulak.spine.handler import Handlers
from ulak.spine.loops.hints import WorkHints
from ulak.spine.loops.running import RunningJobs
from ulak.spine.store import Store
from ulak.spine.units.claim import SuspectDemand, alone_is_waiting

AT_ONCE = 8
ALONE_PATIENCE_SECONDS = 10.0
ALONE_REST_SECONDS = 1.0
ALONE_RETRY_SECONDS = 60.0  # after waiting in vain for quiet, so that the others get most of the time


class Suspects:
    """Decides when suspects are claimed; `claim` takes and begins them, and returns how many there were."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        hints: WorkHints,
        running: RunningJobs,
        claim: Callable[[SuspectDemand], Awaitable[int]],
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._hints = hints
        self._running_jobs = running
        self._claim = claim
        self._alone_at: float | None = None  # when to try again to run one alone; None when none waits

    async def claim(self) -> int:
        frees = {handler.kind: free for handler in self._handlers if (free := self._running_jobs.free_for(handler)) > 0}
        number = min(AT_ONCE - self._running_jobs.suspects, self._running_jobs.free, *frees.values()) if frees else 0
        if number <= 0:
            return 0
        self._hints.suspects = False
        claimed = await self._claim(self._demand(tuple(frees), number, alone=False))
        if claimed:
            self._hints.suspects = True
        elif self._running_jobs.suspects == 0:
            await self._claim_alone()
        return claimed

    async def _claim_alone(self) -> None:
        """A job that died twice gets the process to itself: if it dies again, nobody else is to blame."""
        if self._alone_at is not None and self._clock.monotonic() < self._alone_at:
            return
        kinds = tuple(handler.kind for handler in self._handlers if self._running_jobs.may_run(handler))
        self._alone_at = None
        if not kinds or not await self._store.read(alone_is_waiting, kinds):
            return
        rest_seconds = ALONE_RETRY_SECONDS
        if await self._running_jobs.drained(ALONE_PATIENCE_SECONDS):
            await self._claim(self._demand(kinds, 1, alone=True))
            await self._running_jobs.drained(None)
            rest_seconds = ALONE_REST_SECONDS
        self._alone_at = self._clock.monotonic() + rest_seconds

    def _demand(self, kinds: tuple[str, ...], number: int, *, alone: bool) -> SuspectDemand:
        rates = {one.kind: one.rate_per_second for one in self._handlers if one.rate_per_second is not None}
        return SuspectDemand(self._store.owner, kinds, number, alone, rates)
