"""The readers' threads after their end: whoever asks is told so in our words."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ulak import Ulak
from ulak.errors import Unavailable
from ulak.stores.writer.read_pool import THREADS, ReadPool


async def test_a_read_after_the_end_is_unavailable():
    pool = ReadPool()
    assert await pool.run(lambda: 7) == 7
    assert await pool.close(1)
    with pytest.raises(Unavailable, match="the store is closed"):
        await pool.run(lambda: 7)


async def test_a_store_that_was_closed_meanwhile_is_unavailable():
    async with Ulak("memory:", work=False) as ulak:
        jobs = ulak.jobs
        await jobs.counts()
    with pytest.raises(Unavailable, match="the store is closed"):
        await jobs.counts()


async def test_a_read_that_waits_at_the_end_is_unavailable_and_not_a_cancelled_task():
    pool, over = ReadPool(), threading.Event()
    reading = [asyncio.create_task(pool.run(lambda: over.wait(60))) for _ in range(THREADS)]
    waiting = asyncio.create_task(pool.run(lambda: True))
    await asyncio.sleep(0)  # they begin
    closing = asyncio.create_task(pool.close(60))
    with pytest.raises(Unavailable, match="the store is closed"):
        await waiting
    over.set()
    assert await asyncio.gather(*reading) == [True] * THREADS
    assert await closing


async def test_a_task_that_is_cancelled_while_it_reads_is_cancelled():
    pool, over = ReadPool(), threading.Event()
    reading = [asyncio.create_task(pool.run(lambda: over.wait(60))) for _ in range(THREADS)]
    waiting = asyncio.create_task(pool.run(lambda: True))
    await asyncio.sleep(0)  # they begin
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    over.set()
    await asyncio.gather(*reading)
    assert await pool.close(60)
