"""The redriver: a redrive at a rate that goes on in the background; one at a time, so that the rate is kept."""

from __future__ import annotations

import asyncio

import structlog

from ulak.errors import Conflict, Error
from ulak.spine.jobs import Jobs
from ulak.spine.units.dead_letters import Filter

log = structlog.get_logger("ulak.redriver")


class Redriver:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._task: asyncio.Task[None] | None = None

    def start(self, wanted: Filter, rate_per_second: float) -> None:
        if self._task is not None and not self._task.done():
            raise Conflict("a redrive at a rate is under way already; try again when it has ended, or without a rate")
        self._task = asyncio.create_task(self._run(wanted, rate_per_second), name="ulak-redrive")

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, wanted: Filter, rate_per_second: float) -> None:
        went = 0
        try:
            async for _ in self._jobs.redrive_all(wanted, rate_per_second=rate_per_second):
                went += 1
        except Error as error:
            log.warning("redrive_stopped", redriven=went, error=str(error))
        except asyncio.CancelledError:
            log.warning("redrive_stopped", redriven=went, error="this Ulak is stopping")
            raise
        else:
            log.info("redrive_ended", redriven=went)
