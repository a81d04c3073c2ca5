"""A writer whose thread ends is seen: nobody waits for it, and the process is told that its store is lost."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from ulak.errors import Unavailable
from ulak.spine.store import WriterQueue
from ulak.spine.units.enqueue import ENQUEUE, ENQUEUE_ONE
from ulak.stores.writer.batch import Item
from ulak.stores.writer.writer import MAX_ROWS, _share


async def test_a_writer_that_ends_tells_those_who_wait_and_those_who_come(make):
    ulak = make(work=False)
    async with ulak:
        writers = getattr(ulak.store, "_writers", None)
        writer = writers[WriterQueue.ENQUEUE] if writers else ulak.store._writer

        def break_down(batch):
            raise OSError("the disk is gone")

        writer._serve = break_down
        with pytest.raises(Unavailable, match="the disk is gone") as told:
            await asyncio.wait_for(writer.submit(ENQUEUE_ONE, None), 10)
        assert told.value.outcome == "unknown"
        with pytest.raises(Unavailable, match="the disk is gone"):
            writer.submit(ENQUEUE_ONE, None)
        assert "the disk is gone" in str(ulak.loops.failure)


def test_a_commit_takes_many_single_jobs_and_few_large_batches():
    singles = deque(Item(ENQUEUE_ONE, None, None) for _ in range(5000))
    assert len(_share(singles, 400)) == 400
    batches = deque(Item(ENQUEUE, [None] * 1000, None) for _ in range(10))
    assert len(_share(batches, 400)) == MAX_ROWS // 1000
    assert len(batches) == 10 - MAX_ROWS // 1000
