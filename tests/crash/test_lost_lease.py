"""A process that was taken for dead and lives: what it still runs does not cost it capacity for ever."""

from __future__ import annotations

import asyncio

from tests.crash.child import SETTINGS
from ulak import Ulak
from ulak.settings import load
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.testing import drain


async def test_a_job_that_comes_back_while_its_lost_attempt_runs_leaves_its_capacity_behind(file):
    ulak = Ulak(settings=load(env={}, overrides={"store": file, **SETTINGS}).settings)
    began, again, let_go, pair = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Barrier(2)

    @ulak.handles("slow", concurrency=2)
    async def slow(job):
        if job.payload == "both":
            await pair.wait()  # needs both places of its kind
        elif job.uncertain:
            again.set()
        else:
            began.set()
            await let_go.wait()

    async with asyncio.timeout(30), ulak:
        await ulak.enqueue("slow", "lost")
        await began.wait()
        await ulak.store.submit(RESCUE, Lost(ulak.store.owner, 5))
        await again.wait()
        let_go.set()
        await drain(ulak)
        for _ in range(2):
            await ulak.enqueue("slow", "both")
        await drain(ulak)
        assert (await ulak.jobs.tally())["slow"]["done"] == 3
