"""Webhook deliveries per second to a local sink, by one process: from a full queue to the last one settled."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import uvloop

from bench import report
from bench.figure import Bench, Row
from bench.http_load import Sink
from bench.notify_server import CAPACITY, prepare, serving
from bench.place import in_database, in_file
from ulak import Ulak
from ulak.settings import Settings

LEAST = 1500


def rows(bench: Bench) -> Iterator[Row]:
    number = bench.scaled(10_000, 3_000)
    for name, place in (("SQLite", in_file), ("PostgreSQL", lambda *given: in_database(bench.server, *given))):
        samples = [place(delivered, number) for _ in range(bench.rounds)]
        rate = median(samples)
        yield Row(
            f"{name}: deliveries to a local sink, one process", "/s", rate, against="limit", other=LEAST,
            ratio=rate / LEAST, target=f"≥ {LEAST:,} /s", met=rate >= LEAST, detail={"samples": samples},
        )  # fmt: skip


def delivered(place: str, number: int) -> float:
    """The sink is a process of its own; Ulak is the process that measures."""
    store = place if "://" in place else f"sqlite:///{place}"
    prepare()
    with serving(sink) as (port, _):
        return uvloop.run(_drain(store, f"http://127.0.0.1:{port}/hook", number))


def ulak_on(store: str, **webhook: Any) -> Ulak:
    section = {"allow": "127.0.0.0/8", "slots_per_destination": 100, **webhook}
    return Ulak(settings=Settings(store=store, notify={"capacity": CAPACITY}, channels={"webhook": section}))


async def _drain(store: str, hook: str, number: int) -> float:
    ulak = ulak_on(store)
    ulak._work = False
    request = json.dumps({"notificationType": "WEBHOOK", "recipient": hook, "body": "Hello " * 20}).encode()
    async with ulak:
        for start in range(0, number, 1000):
            await ulak.notify.accept_batch([request] * min(1000, number - start))
    ulak = ulak_on(store)
    begins = time.perf_counter()
    async with ulak:
        while ulak.telemetry.counters[("jobs_settled", "notify.webhook", "done")] < number:
            await asyncio.sleep(0.005)
        return number / (time.perf_counter() - begins)


def sink(pipe: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Sink, "127.0.0.1", 0)
        pipe.send((server.sockets[0].getsockname()[1], ""))
        await loop.run_in_executor(None, pipe.recv)
        server.close()

    uvloop.run(serve())


if __name__ == "__main__":
    report.alone("notify_deliveries", rows)
