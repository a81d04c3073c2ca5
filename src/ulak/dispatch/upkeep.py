"""The room's background work: it writes positions, recounts tasks, and keeps its figures fresh for /metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from ulak.dispatch.depth import RECOUNT_SECONDS
from ulak.dispatch.fairness import Figures, read_overdue
from ulak.dispatch.service import Dispatch
from ulak.errors import Error
from ulak.spine.loops.chores import Chores
from ulak.spine.store import Store
from ulak.spine.telemetry import GaugePoint

AUDIT_SECONDS = 5.0
FIGURES_SECONDS = 10.0
CLOSE_SECONDS = 5.0  # for the positions that wait when the store closes; the rest were hints
MANY = 5_000  # positions that wait: the next are written without a pause
# An offer so long past its deadline has lost its timer: somebody has cancelled that, or it is among the dead letters.
GRACE_MILLIS = 30_000
GAUGES = {
    "ulak_dispatch_tasks": "Unfinished tasks.",
    "ulak_dispatch_overdue_seconds": "Age of the oldest open offer past its deadline.",
    "ulak_dispatch_positions_waiting": "Positions sent in bulk that are not written yet.",
    "ulak_dispatch_position_lag_seconds": "How long the oldest of them has waited.",
    "ulak_dispatch_helpers": "Active helpers.",
    "ulak_dispatch_gini": "How unevenly this month's tasks are shared: 0 evenly, 1 one has all.",
    "ulak_dispatch_longest_wait_seconds": "Since the active helper who waits longest had work.",
    "ulak_dispatch_silent_share": "Share of active helpers who let offers expire in a row.",
    "ulak_dispatch_assign_p50_seconds": "From opening to assignment, half of the recent tasks.",
    "ulak_dispatch_assign_p95_seconds": "From opening to assignment, 95 % of the recent tasks.",
    "ulak_dispatch_acceptance_rate": "Share of recent offers that were accepted.",
}


class Upkeep:
    """Four chores that live as long as the store is open."""

    def __init__(self, service: Dispatch, open_store: Callable[[], Store], flush_seconds: float) -> None:
        self._service = service
        self._store = open_store
        self._flush_seconds = flush_seconds
        self._figures = Figures()
        self._overdue_seconds = 0.0
        self._chores = Chores("dispatch")

    async def start(self) -> None:
        await self._recount()
        clock = self._store().clock
        self._chores.begin(clock, "positions", self._flush_seconds, self._flush)
        self._chores.begin(clock, "depth", RECOUNT_SECONDS, self._recount)
        self._chores.begin(clock, "overdue", AUDIT_SECONDS, self._audit)
        self._chores.begin(clock, "figures", FIGURES_SECONDS, self._look, rest=20)  # a look at a million takes a while

    async def close(self) -> None:
        if await self._chores.end():
            with contextlib.suppress(Error, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    while len(self._service.hints):
                        await self._service.flush_positions()

    async def _flush(self) -> None:
        """As fast as the store takes them, while more come than it can write in time."""
        while await self._service.flush_positions() and len(self._service.hints) > MANY:
            continue

    async def _recount(self) -> None:
        """For what other processes did, and for callers who went away before their commit was answered."""
        await self._service.depth.recount(self._store())

    async def _audit(self) -> None:
        """Apart from the figures: those of many helpers can take longer than a read may."""
        self._overdue_seconds = await self._store().read(read_overdue)
        if self._overdue_seconds * 1000 > GRACE_MILLIS:
            await self._service.progress.expire_overdue(GRACE_MILLIS)

    async def _look(self) -> None:
        self._figures = await self._service.fairness()

    def gauges(self) -> Iterable[GaugePoint]:
        figures, hints = self._figures, self._service.hints
        values = {
            "tasks": self._service.depth.live,
            "positions_waiting": len(hints),
            "position_lag_seconds": hints.lag_seconds(),
            **{name: getattr(figures, name) for name in Figures.__dataclass_fields__},
            "overdue_seconds": self._overdue_seconds,
        }
        for name, text in GAUGES.items():
            value = values[name.removeprefix("ulak_dispatch_")]
            if value is not None:  # nobody was assigned yet
                yield GaugePoint(name, text, {}, float(value))
