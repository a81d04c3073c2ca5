"""From the 202 asked for to the arrival at a local sink, at a steady 500 notifications a second."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import uvloop

from bench import report
from bench.figure import Bench, Row, bounded
from bench.http_load import Asking, Sink, post
from bench.load import percentile
from bench.notify_server import serving, ulak_server
from bench.place import in_database, in_file

RATE = 500
MAX_P95_MS = 100
WEBHOOK = {"channels": {"webhook": {"allow": "127.0.0.0/8", "slots_per_destination": 100}}}


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.scaled(10, 3)
    yield _row("SQLite", in_file(measured, seconds))
    yield _row("PostgreSQL", in_database(bench.server, measured, seconds))


def _row(name: str, times: list[float]) -> Row:
    p50, p95, p99 = (percentile(times, percent) * 1000 for percent in (50, 95, 99))
    figure = f"{name}: accept to delivered at {RATE}/s, p95"
    return bounded(figure, "ms", p95, MAX_P95_MS, p50_ms=p50, p99_ms=p99, delivered=len(times))


def measured(place: str, seconds: float) -> list[float]:
    store = place if "://" in place else f"sqlite:///{place}"
    with serving(ulak_server, store, True, dict(WEBHOOK)) as (port, token):
        return uvloop.run(_steady(port, token, seconds))


async def _steady(port: int, token: str, seconds: float) -> list[float]:
    """Each request at its own moment, whatever became of those before it: a slow answer does not slow the next."""
    loop = asyncio.get_running_loop()
    times: dict[str, float] = {}
    arrived: dict[str, float] = {}
    Sink.arrived = staticmethod(lambda body: arrived.setdefault(json.loads(body)["body"], time.perf_counter()))
    server = await loop.create_server(Sink, "127.0.0.1", 0)
    hook = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    line = WriterQueue(port)
    number = round(RATE * seconds)
    begins = loop.time()
    for index in range(number):
        await asyncio.sleep(max(begins + index / RATE - loop.time(), 0))
        request = {"notificationType": "WEBHOOK", "recipient": hook, "body": str(index)}
        times[str(index)] = time.perf_counter()
        await line.send(post("/api/notifications", request, token))
    async with asyncio.timeout(30):
        while len(arrived) < number:
            await asyncio.sleep(0.01)
    server.close()
    warm = RATE // 2
    return [arrived[name] - asked for name, asked in times.items() if int(name) >= warm]


class WriterQueue:
    """Connections that are used again as soon as they are free; a new one when none is."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[Once] = []

    async def send(self, request: bytes) -> None:
        once = self._free.pop() if self._free else await self._new()
        once.waiting = request
        once.ask()

    async def _new(self) -> Once:
        _, once = await asyncio.get_running_loop().create_connection(lambda: Once(self._free), "127.0.0.1", self._port)
        return once


class Once(Asking):
    """Asks once each time that it is told to, and says when it is free again."""

    def __init__(self, free: list[Once]) -> None:
        super().__init__(self._take, lambda _status, _seconds: free.append(self))
        self.waiting: bytes | None = None

    def _take(self) -> bytes | None:
        request, self.waiting = self.waiting, None
        return request


if __name__ == "__main__":
    report.alone("notify_latency", rows)
