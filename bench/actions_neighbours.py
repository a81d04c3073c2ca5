"""What a bad provider costs other plans: their p95 from accept to provider beside it, against a room without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from statistics import median

import uvloop

from bench import report
from bench.actions_plans import make_plan
from bench.figure import Bench, Row, alternate, paired
from bench.load import percentile
from bench.neighbour_receivers import Receivers
from bench.notify_server import prepare
from bench.place import in_database, in_file
from ulak import Ulak
from ulak.settings import Settings

RATE = 100
NEIGHBOURS_RATE = 100
MAX_CHANGE = 0.10
STEP = [{"step_order": 1, "channel_type": "webhook", "body": "{{ n }}"}]
# name: (share of first attempts that fail, seconds that an answer takes). Longer than a step's time limit is dark.
NEIGHBOURS: dict[str, tuple[float, float]] = {
    "a provider that is dark": (0.0, 30.0),
    "a provider that fails 7 % at first": (0.07, 0.0),
}


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.scaled(6.0, 2.0)
    for name, place in (("SQLite", in_file), ("PostgreSQL", partial(in_database, bench.server))):
        for neighbour, kind in NEIGHBOURS.items():
            sides = {"beside": partial(place, p95, kind, seconds), "alone": partial(place, p95, (0.0, 0.0), seconds)}
            samples = alternate(bench.rounds, sides)
            ratio = paired(samples["beside"], samples["alone"])
            yield Row(
                f"{name}: other plans' accept to provider, p95, beside {neighbour}", "ms", median(samples["beside"]),
                against="beside a sound one", other=median(samples["alone"]), ratio=ratio,
                target=f"change < {MAX_CHANGE:.0%}", met=ratio - 1 < MAX_CHANGE, detail=samples,
            )  # fmt: skip


def p95(place: str, neighbour: tuple[float, float], seconds: float) -> float:
    prepare()
    store = place if "://" in place else f"sqlite:///{place}"
    return percentile(uvloop.run(_others(store, neighbour, seconds)), 95) * 1000


async def _others(store: str, neighbour: tuple[float, float], seconds: float) -> list[float]:
    """Seconds from accept to provider of the good ones; as many go to the neighbour, at the same pace."""
    settings = Settings(store=store, channels={"webhook": {"allow": "127.0.0.0/8"}})
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(Receivers(1).listening())
        other = await stack.enter_async_context(Receivers(1, *neighbour).listening())
        ulak = await stack.enter_async_context(Ulak(settings=settings))
        plan, bad = [await make_plan(ulak, one.urls[0], STEP) for one in (good, other)]
        asked: dict[str, float] = {}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ask(ulak, bad, "bad", NEIGHBOURS_RATE, seconds, {}))
            tasks.create_task(_ask(ulak, plan, "good", RATE, seconds, asked))
        async with asyncio.timeout(60):
            while len(good.arrived) < len(asked):
                await asyncio.sleep(0.01)
    return [good.arrived[mark] - at for mark, at in asked.items()]


async def _ask(ulak: Ulak, plan: int, name: str, rate: int, seconds: float, asked: dict[str, float]) -> None:
    loop = asyncio.get_running_loop()
    begins = loop.time()
    for n in range(round(rate * seconds)):
        await asyncio.sleep(max(begins + n / rate - loop.time(), 0))
        asked[str(n)] = time.perf_counter()
        await ulak.actions.request(plan, f"{name}-{n}", variables={"n": n})


if __name__ == "__main__":
    report.alone("actions_neighbours", rows)
