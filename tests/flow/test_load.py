"""Under load: two thousand producers at once, and a backup that can be restored."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import build
from ulak import Conflict, NewJob
from ulak.testing import drain


async def test_two_thousand_producers_at_once_are_all_served_and_the_workers_are_not_starved(make, recorder):
    ulak = make()
    done_while_producing = 0
    producing = True

    @ulak.handles("mail.send", concurrency=500)
    async def send(_):
        nonlocal done_while_producing
        done_while_producing += producing

    async with ulak:
        ids = await asyncio.gather(*(ulak.enqueue("mail.send", n) for n in range(2000)))
        for _ in range(10):  # a worker takes hundreds at once, so a machine that is busy may need more than one round
            ids += await asyncio.gather(*(ulak.enqueue("mail.send", n) for n in range(2000)))
            if done_while_producing > 100:
                break
        producing = False
        await drain(ulak)
        tally = (await ulak.jobs.tally())["mail.send"]
    assert len(set(ids)) == len(ids) >= 4000
    assert tally == {"accepted": len(ids), "done": len(ids)}
    assert done_while_producing > 100


async def test_a_backup_under_load_is_consistent_and_can_be_opened_as_a_store(
    sqlite_address, clock, recorder, tmp_path
):
    ulak = build(sqlite_address, clock)

    @ulak.handles("mail.send", concurrency=50)
    async def send(_):
        await asyncio.sleep(0)

    stop = asyncio.Event()

    async def produce():
        while not stop.is_set():
            await ulak.enqueue("mail.send", "x" * 300, key=f"key-{id(asyncio.current_task()) % 7}")

    async with ulak:
        before = await ulak.enqueue_many([NewJob("mail.later", n, delay_seconds=3600) for n in range(50)])
        producers = [asyncio.create_task(produce()) for _ in range(20)]
        while (await ulak.jobs.tally()).get("mail.send", {}).get("done", 0) < 200:
            await asyncio.sleep(0)
        await ulak.store.backup(str(tmp_path / "copy.db"))
        with pytest.raises(Conflict, match="exists already"):
            await ulak.store.backup(str(tmp_path / "copy.db"))
        stop.set()
        await asyncio.gather(*producers)
        await drain(ulak)
    restored = build(f"sqlite:///{tmp_path}/copy.db", clock)
    recorder.on(restored, "mail.send", concurrency=50)
    async with restored:
        assert (await restored.jobs.counts())["mail.later"]["deferred"] == 50
        await drain(restored)
        for job in before:
            assert (await restored.jobs.get(job)).status == "deferred"
        words = (await restored.jobs.tally())["mail.send"]
        assert words["accepted"] == words["done"]
        # What was running when the copy was made is uncertain in it, and nothing else.
        assert sum(job.uncertain for job in recorder.jobs) == words.get("uncertain", 0)
