"""The others' p95 with 10,000 notifications waiting for an endpoint that never answers, against a room without it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from statistics import median

import uvloop

from bench import report
from bench.figure import Bench, Row, alternate, paired
from bench.http_load import Sink
from bench.load import percentile
from bench.notify_deliveries import ulak_on
from bench.notify_server import prepare
from bench.place import in_file
from ulak import Ulak

WAITING = 10_000
RATE = 200
MAX_CHANGE = 0.10


def rows(bench: Bench) -> Iterator[Row]:
    seconds = 3
    samples = alternate(
        bench.scaled(9, 1),  # a few milliseconds are compared, and a machine's moods are larger
        {"beside": lambda: in_file(others, WAITING, seconds), "alone": lambda: in_file(others, 0, seconds)},
    )
    ratio = paired(samples["beside"], samples["alone"])
    yield Row(
        f"SQLite: others' p95 beside a dead endpoint, {WAITING:,} waiting", "ms", median(samples["beside"]),
        against="without it", other=median(samples["alone"]), ratio=ratio, target=f"change < {MAX_CHANGE:.0%}",
        met=ratio - 1 < MAX_CHANGE,
        detail={"samples": samples},
    )  # fmt: skip


class Dead(asyncio.Protocol):
    """Takes the connection and the request, and never says a word."""


def others(place: str, waiting: int, seconds: float) -> float:
    prepare()
    return uvloop.run(_measured(f"sqlite:///{place}", waiting, seconds))


async def _measured(store: str, waiting: int, seconds: float) -> float:
    loop, arrived = asyncio.get_running_loop(), dict[str, float]()
    Sink.arrived = staticmethod(lambda body: arrived.setdefault(json.loads(body)["body"], time.perf_counter()))
    living, silent = [await loop.create_server(kind, "127.0.0.1", 0) for kind in (Sink, Dead)]
    hook, dead = (f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}/hook" for one in (living, silent))
    request = json.dumps({"notificationType": "WEBHOOK", "recipient": dead, "body": "Hello"}).encode()
    ulak = ulak_on(store, slots_per_destination=8, timeout_seconds=2)
    async with ulak:
        for _ in range(waiting // 1000):
            await ulak.notify.accept_batch([request] * 1000)
        await asyncio.sleep(1)  # the disk has its own work after such a fill
        asked = await _send_steadily(ulak, hook, seconds)
        while len(arrived) < len(asked):
            await asyncio.sleep(0.01)
    living.close()
    silent.close()
    return percentile([arrived[name] - asked[name] for name in asked if int(name) >= RATE], 95) * 1000


async def _send_steadily(ulak: Ulak, hook: str, seconds: float) -> dict[str, float]:
    loop, begins, asked = asyncio.get_running_loop(), asyncio.get_running_loop().time(), dict[str, float]()
    sending = []
    for index in range(round(RATE * seconds)):
        await asyncio.sleep(max(begins + index / RATE - loop.time(), 0))
        asked[str(index)] = time.perf_counter()
        sending.append(asyncio.create_task(ulak.notify.send("WEBHOOK", hook, str(index))))
    await asyncio.gather(*sending)
    return asked


if __name__ == "__main__":
    report.alone("notify_dead_endpoint", rows)
