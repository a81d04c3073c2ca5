"""The redriver: a redrive at a rate that goes on in the background; one at a time, so that the rate is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

import structlog

from ulak.clock import Clock
from ulak.errors import Conflict, Error
from ulak.spine.jobs import Jobs
from ulak.spine.units.dead_letters import Filter

log = structlog.get_logger("ulak.redriver")


@dataclass(slots=True)
class Progress:
    """How far a redrive is; `matched` is how many fitted when it began."""

    matched: int
    rate_per_second: float
    started_at: int
    redriven: int = 0
    state: Literal["running", "ended", "stopped", "failed"] = "running"


class Redriver:
    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.progress: Progress | None = None

    def start(self, wanted: Filter, rate_per_second: float, matched: int, *, who: str = "python") -> None:
        if self._task is not None and not self._task.done():
            raise Conflict(
                "a redrive at a rate is under way already; stop it with DELETE /api/dead/redrive, wait for its end, "
                "or ask without a rate"
            )
        self.progress = Progress(matched, rate_per_second, self._clock.now())
        self._task = asyncio.create_task(self._run(wanted, self.progress, who), name="ulak-redrive")

    def stop(self) -> Progress:
        """Letters that went stay sent."""
        if self.progress is None or self._task is None or self._task.done():
            raise Conflict("no redrive at a rate is under way")
        self.progress.state = "stopped"
        self._task.cancel()
        return self.progress

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, wanted: Filter, progress: Progress, who: str) -> None:
        try:
            async for _ in self._jobs.redrive_all(wanted, rate_per_second=progress.rate_per_second, who=who):
                progress.redriven += 1
        except Error as error:
            progress.state = "failed"
            log.warning("redrive_stopped", redriven=progress.redriven, error=str(error))
        except asyncio.CancelledError:
            log.warning("redrive_stopped", redriven=progress.redriven, by=progress.state)
            raise
        else:
            progress.state = "ended"
            log.info("redrive_ended", redriven=progress.redriven)
