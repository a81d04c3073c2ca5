"""Procrastinate on PostgreSQL: psycopg pool, asynchronous tasks, LISTEN/NOTIFY, done jobs deleted.

Settings: a pool of 10 and a worker concurrency of 20 (its documentation asks for asynchronous tasks and a
concurrency above 1; `python -m bench.sweep` compares others), deletion of finished jobs so that its table stays small.
"""

from __future__ import annotations

import asyncio
import logging
import time

import procrastinate
import uvloop

from bench.load import PAYLOAD, Countdown, flood, produce_jobs
from bench.postgres_server import refresh_statistics

POOL = 10
CONCURRENCY = 20


def enqueue(uri: str, producers: int, seconds: float) -> float:
    """Durable enqueues per second."""
    return uvloop.run(_enqueue(uri, producers, seconds))


def end_to_end(uri: str, producers: int, jobs: int, concurrency: int = CONCURRENCY, pool: int = POOL) -> float:
    """Jobs per second from the first enqueue to the last one run, producers and worker together."""
    return uvloop.run(_end_to_end(uri, producers, jobs, concurrency, pool))


async def _enqueue(uri: str, producers: int, seconds: float) -> float:
    app = _app(uri, POOL)
    task = app.task(name="send")(_send)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        return await flood(lambda: task.defer_async(payload=PAYLOAD), producers, seconds)


async def _end_to_end(uri: str, producers: int, jobs: int, concurrency: int, pool: int) -> float:
    app = _app(uri, pool)
    countdown = Countdown(jobs)

    @app.task(name="send")
    async def send(payload: object) -> None:
        countdown.tick()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(
            app.run_worker_async(concurrency=concurrency, install_signal_handlers=False, delete_jobs="always")
        )
        begins = time.perf_counter()
        await produce_jobs(
            lambda: send.defer_async(payload=PAYLOAD), producers, jobs, halfway=lambda: refresh_statistics(uri)
        )
        await countdown.done.wait()
        rate = jobs / (time.perf_counter() - begins)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    return rate


async def _send(payload: object) -> None:
    """The task of the enqueue figure; no worker runs it."""


def _app(uri: str, pool: int) -> procrastinate.App:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=uri, min_size=pool, max_size=pool))
