"""The room's work beside its jobs: it ends orphaned steps, and keeps the gauges of its service levels fresh."""

from __future__ import annotations

from collections.abc import Iterator

from ulak.actions import sweeper, watch
from ulak.actions.steps.ends import StepEnds
from ulak.log import get_logger
from ulak.spine.loops.chores import Chores
from ulak.spine.room import Host
from ulak.spine.telemetry import GaugePoint

log = get_logger("ulak.actions")

SWEEP_SECONDS = 5.0
GAUGE_SECONDS = 30.0
GAUGES = {
    "ulak_actions_slo_burn_rate": "How fast a service level's budget is used up: 1 uses exactly what there is.",
    "ulak_actions_watchdog_difference": "Accepted runs that neither ended nor wait for a reason; 0, or a defect.",
}


class Caretaker:
    def __init__(self, host: Host, ends: StepEnds) -> None:
        self._host = host
        self._ends = ends
        self._chores = Chores("actions")
        self._burns: dict[int, dict[str, float]] = {}
        self._difference = 0
        self._looked_at: float | None = None

    async def start(self) -> None:
        if self._host.works:
            self._chores.begin(self._host.clock, "caretaker", SWEEP_SECONDS, self._run)

    async def close(self) -> None:
        await self._chores.end()

    async def _run(self) -> None:
        await self.sweep()
        await self._look()

    async def sweep(self) -> int:
        """Returns how many steps were ended."""
        store = self._host.store
        orphans = await store.read(sweeper.find_orphans)
        if not orphans:
            return 0
        ended = await store.write(sweeper.end_orphans, orphans, self._ends)
        if ended:
            log.warning("actions_orphans_ended", steps=ended)
        return ended

    async def _look(self) -> None:
        now = self._host.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < GAUGE_SECONDS:
            return
        self._looked_at = now
        self._burns = await self._host.store.read(watch.burn_rates)
        self._difference = (await self._host.store.read(watch.watch))["difference"]

    def gauges(self) -> Iterator[GaugePoint]:
        for hours, levels in self._burns.items():
            for level, burn in levels.items():
                labels = {"level": level, "hours": str(hours)}
                yield GaugePoint("ulak_actions_slo_burn_rate", GAUGES["ulak_actions_slo_burn_rate"], labels, burn)
        name = "ulak_actions_watchdog_difference"
        yield GaugePoint(name, GAUGES[name], {}, self._difference)
