"""What a bad neighbour costs the others: their accept p99 and delivery p95 beside it, against a room without it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import NamedTuple

import uvloop

from bench import report
from bench.figure import Bench, Row, alternate, paired
from bench.load import percentile
from bench.neighbour_receivers import Receivers, elsewhere
from bench.notify_server import prepare
from bench.place import in_file
from ulak import NewJob, Ulak
from ulak.errors import Error
from ulak.settings import Settings

RATE = 200
MAX_CHANGE = 0.10
MAX_FLAKY = 1.3
KEYS = 20


class Neighbour(NamedTuple):
    """Receivers, the share of first attempts that fail, seconds that an answer takes; how much is sent, and when."""

    receivers: int
    failing: float
    seconds: float
    number: int
    when: str


NEIGHBOURS = {
    "10,000 to a dead receiver": Neighbour(1, 1.0, 0.0, 10_000, "now"),
    "10,000 to one that fails 5 % at first": Neighbour(1, 0.05, 0.0, 10_000, "now"),
    "10,000 to one that fails 20 % at first": Neighbour(1, 0.2, 0.0, 10_000, "now"),
    "10,000 to a slow one (10 s)": Neighbour(1, 0.0, 10.0, 10_000, "now"),
    "12 slow ones (10 s)": Neighbour(12, 0.0, 10.0, 1_200, "now"),
    "100,000 scheduled": Neighbour(1, 0.0, 0.0, 100_000, "tomorrow"),
    "10,000 due at once": Neighbour(1, 0.0, 0.0, 10_000, "soon"),
}


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.scaled(4.0, 1.0)
    for name, neighbour in NEIGHBOURS.items():
        beside = neighbour._replace(number=bench.scaled(neighbour.number, neighbour.number // 20))
        sides = {"beside": beside, "without it": None}
        if 0 < beside.failing < 1:  # it is delivered at once, and that takes time whether some fail or not
            sides["beside a sound one"] = beside._replace(failing=0.0)
        samples = alternate(bench.rounds, {side: partial(in_file, others, one, seconds) for side, one in sides.items()})
        for against in list(sides)[1:]:
            for place, figure in enumerate(("accept p99", "delivery p95")):
                yield _row(f"SQLite: others' {figure} beside {name}", samples, against, place)
    yield from _first_attempts(bench)
    yield _keyed_end_to_end(bench)


def _row(figure: str, samples: dict[str, list[tuple[float, float]]], against: str, place: int) -> Row:
    beside, other = ([one[place] for one in samples[side]] for side in ("beside", against))
    ratio = paired(beside, other)
    return Row(
        figure, "ms", median(beside), against=against, other=median(other), ratio=ratio,
        target=f"change < {MAX_CHANGE:.0%}", met=ratio - 1 < MAX_CHANGE, detail={"beside": beside, against: other},
    )  # fmt: skip


def _first_attempts(bench: Bench) -> Iterator[Row]:
    number = bench.scaled(4000, 500)
    samples = alternate(
        bench.rounds,
        {"flaky": lambda: in_file(first_attempts, 0.05, number), "sound": lambda: in_file(first_attempts, 0.0, number)},
    )
    ratio = paired(samples["flaky"], samples["sound"])
    yield Row(
        f"SQLite: first attempts of {number:,} webhooks, 5 % failing", "s", median(samples["flaky"]),
        against="0 % failing", other=median(samples["sound"]), ratio=ratio, target=f"< {MAX_FLAKY:g} ×",
        met=ratio < MAX_FLAKY, detail={"samples": samples},
    )  # fmt: skip


def _keyed_end_to_end(bench: Bench) -> Row:
    number = bench.scaled(40_000, 4_000)
    samples = [in_file(keyed, number) for _ in range(bench.rounds)]
    return Row(f"SQLite: end to end, {KEYS} keys with 8 slots", "jobs/s", median(samples), detail={"samples": samples})


def ulak_on(place: str) -> Ulak:
    """With default settings, but for the receivers' network and a stop that does not wait for the slow ones."""
    prepare()
    sections = {"worker": {"stop_grace_seconds": 0}, "channels": {"webhook": {"allow": "127.0.0.0/8"}}}
    return Ulak(settings=Settings(store=f"sqlite:///{place}", **sections))


# In a process of its own


def others(place: str, neighbour: Neighbour | None, seconds: float) -> tuple[float, float]:
    if neighbour is None:
        return uvloop.run(_others(place, None, [], seconds))
    with elsewhere(neighbour.receivers, neighbour.failing, neighbour.seconds) as urls:
        return uvloop.run(_others(place, neighbour, urls, seconds))


async def _others(place: str, neighbour: Neighbour | None, urls: list[str], seconds: float) -> tuple[float, float]:
    async with AsyncExitStack() as stack:
        living = await stack.enter_async_context(Receivers(1).listening())
        ulak = await stack.enter_async_context(ulak_on(place))
        if neighbour is not None:
            await _fill(ulak, urls, neighbour.number, neighbour.when)
            await asyncio.sleep(1)  # the disk has its own work after such a fill
        asked, accepted = await _send_steadily(ulak, living.urls[0], seconds)
        while len(living.arrived) < len(asked):
            await asyncio.sleep(0.01)
    late = [name for name in asked if int(name) >= RATE // 2]  # after the warm-up
    delivered = [living.arrived[name] - asked[name] for name in late]
    return percentile([accepted[name] for name in late], 99) * 1000, percentile(delivered, 95) * 1000


async def _fill(ulak: Ulak, urls: list[str], number: int, when: str) -> None:
    delay = {"now": None, "soon": timedelta(seconds=3), "tomorrow": timedelta(days=1)}[when]
    send_at = None if delay is None else (datetime.now(UTC) + delay).isoformat()
    requests = [{"notificationType": "WEBHOOK", "recipient": url, "body": "x", "sendAt": send_at} for url in urls]
    documents = [json.dumps({name: value for name, value in one.items() if value}).encode() for one in requests]
    for start in range(0, number, 1000):
        size = min(1000, number - start)
        verdicts = await ulak.notify.accept_batch([documents[index % len(documents)] for index in range(size)])
        refused = [one for one in verdicts if isinstance(one, Error)]
        if refused:
            raise RuntimeError(f"{len(refused)} of {size} were refused: {refused[0]}")


async def _send_steadily(ulak: Ulak, hook: str, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    loop = asyncio.get_running_loop()
    begins, asked, accepted = loop.time(), dict[str, float](), dict[str, float]()

    async def send(name: str) -> None:
        asked[name] = time.perf_counter()
        await ulak.notify.send("WEBHOOK", hook, name)
        accepted[name] = time.perf_counter() - asked[name]

    sending = []
    for index in range(round(RATE * seconds)):
        await asyncio.sleep(max(begins + index / RATE - loop.time(), 0))
        sending.append(asyncio.create_task(send(str(index))))
    await asyncio.gather(*sending)
    return asked, accepted


def first_attempts(place: str, failing: float, number: int) -> float:
    return uvloop.run(_first_attempts_of(place, failing, number))


async def _first_attempts_of(place: str, failing: float, number: int) -> float:
    async with Receivers(1, failing).listening() as receiver, ulak_on(place) as ulak:
        begins = time.perf_counter()
        await _fill_named(ulak, receiver.urls[0], number)
        while len(receiver.arrived) < number:
            await asyncio.sleep(0.005)
        return max(receiver.arrived.values()) - begins


async def _fill_named(ulak: Ulak, url: str, number: int) -> None:
    for start in range(0, number, 500):
        names = map(str, range(start, min(start + 500, number)))
        await asyncio.gather(*(ulak.notify.send("WEBHOOK", url, name) for name in names))


def keyed(place: str, number: int) -> float:
    return uvloop.run(_keyed(place, number))


async def _keyed(place: str, number: int) -> float:
    prepare()
    ulak, ended = Ulak(settings=Settings(store=f"sqlite:///{place}")), asyncio.Event()
    done = 0

    @ulak.handles("bench.keyed", concurrency=200)
    async def run(_: object) -> None:
        nonlocal done
        done += 1
        if done == number:
            ended.set()

    async with ulak:
        begins = time.perf_counter()
        for start in range(0, number, 1000):
            await ulak.enqueue_many(
                [NewJob("bench.keyed", key=f"k{index % KEYS}", slots=8) for index in range(start, start + 1000)]
            )
        await ended.wait()
        return number / (time.perf_counter() - begins)


if __name__ == "__main__":
    report.alone("neighbours", rows)
