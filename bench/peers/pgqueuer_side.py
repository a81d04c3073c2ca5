"""PgQueuer on PostgreSQL: asyncpg pool and uvloop (its fastest driver), its large batch, logged tables (its default).

Its handlers are asynchronous and unlimited (its default). `python -m bench.sweep` compares batches and pools.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import timedelta

import asyncpg  # type: ignore[import-untyped]
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.load import PAYLOAD, Countdown, flood, produce_jobs
from bench.postgres_server import refresh_statistics

POOL = 10
BATCH = 1_000
FILL = 1_000
BODY = json.dumps(PAYLOAD).encode()


def enqueue(uri: str, producers: int, seconds: float) -> float:
    """Durable enqueues per second."""
    return uvloop.run(_enqueue(uri, producers, seconds))


def end_to_end(uri: str, producers: int, jobs: int, batch: int = BATCH, pool: int = POOL) -> float:
    """Jobs per second from the first enqueue to the last one run, producers and worker together."""
    return uvloop.run(_work(uri, producers, jobs, batch, pool))


def drain(uri: str, jobs: int, batch: int = BATCH, pool: int = POOL) -> float:
    """Jobs per second from a queue that was filled before."""
    return uvloop.run(_work(uri, 0, jobs, batch, pool))


async def _enqueue(uri: str, producers: int, seconds: float) -> float:
    async with asyncpg.create_pool(uri, min_size=POOL, max_size=POOL) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        return await flood(lambda: queries.enqueue("send", BODY), producers, seconds)


async def _work(uri: str, producers: int, jobs: int, batch: int, pool_size: int) -> float:
    logging.getLogger("pgqueuer").setLevel(logging.ERROR)
    async with asyncpg.create_pool(uri, min_size=pool_size, max_size=pool_size) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()
        if not producers:
            await _fill(queries, jobs)
            refresh_statistics(uri)
        queue, countdown = PgQueuer(driver), Countdown(jobs)

        @queue.entrypoint("send")
        async def send(job: Job) -> None:
            countdown.tick()

        begins = time.perf_counter()
        worker = asyncio.create_task(queue.run(batch_size=batch, dequeue_timeout=timedelta(seconds=1)))
        await produce_jobs(
            lambda: queries.enqueue("send", BODY), producers, jobs, halfway=lambda: refresh_statistics(uri)
        )
        await countdown.done.wait()
        rate = jobs / (time.perf_counter() - begins)
        queue.shutdown.set()
        await worker
    return rate


async def _fill(queries: Queries, jobs: int) -> None:
    for _ in range(0, jobs, FILL):
        await queries.enqueue(["send"] * FILL, [BODY] * FILL, [0] * FILL)
