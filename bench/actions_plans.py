"""Action plans: 6,000 two-step plans at once beside 6,000 notify webhooks, and the latency of a steady 500 a second."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import uvloop

from bench import report
from bench.figure import Bench, Row, bounded
from bench.http_load import Sink
from bench.load import percentile
from bench.notify_server import CAPACITY, prepare
from bench.place import in_database, in_file
from ulak import Ulak
from ulak.cli.process import spare_the_collector
from ulak.settings import Settings

PLANS, QUICK_PLANS = 6_000, 1_500
MAX_RATIO = 1.5
RATE = 500
MAX_P95_MS = {"SQLite": 100, "PostgreSQL": 150}
STEPS = [{"step_order": place, "channel_type": "webhook", "body": "{{ n }}"} for place in (1, 2)]


def rows(bench: Bench) -> Iterator[Row]:
    number, seconds = bench.scaled(PLANS, QUICK_PLANS), bench.scaled(10, 3)
    for name, place in (("SQLite", in_file), ("PostgreSQL", lambda *given: in_database(bench.server, *given))):
        pairs = [place(at_once, number) for _ in range(bench.rounds)]
        ratio = median(ours / theirs for ours, theirs in pairs)
        yield Row(
            f"{name}: first steps of {number:,} two-step plans", "s", median(ours for ours, _ in pairs),
            against="notify webhooks", other=median(theirs for _, theirs in pairs), ratio=ratio,
            target=f"≤ {MAX_RATIO} ×", met=ratio <= MAX_RATIO, detail={"samples": pairs},
        )  # fmt: skip
        times = place(steady, seconds)
        p95 = percentile(times, 95) * 1000
        figure = f"{name}: accept to provider at {RATE} plans/s, p95"
        yield bounded(figure, "ms", p95, MAX_P95_MS[name], p50_ms=percentile(times, 50) * 1000)


def at_once(place: str, number: int) -> tuple[float, float]:
    prepare()
    return uvloop.run(_at_once(place if "://" in place else f"sqlite:///{place}", number))


def steady(place: str, seconds: float) -> list[float]:
    prepare()
    return uvloop.run(_steady(place if "://" in place else f"sqlite:///{place}", seconds))


class Arrivals:
    """A provider on loopback that says yes, and remembers when which body came first."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.number = 0

    def arrived(self, body: bytes) -> None:
        self.number += 1
        self.at.setdefault(_mark(json.loads(body)), time.perf_counter())

    async def open(self) -> str:
        Sink.arrived = staticmethod(self.arrived)
        self._server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"

    async def all(self, number: int) -> None:
        async with asyncio.timeout(180):
            while self.number < number:
                await asyncio.sleep(0.005)


def _mark(document: dict[str, Any]) -> str:
    return f"{document['metadata'].get('step_order', 0)}:{document['body']}"


def ulak_on(store: str) -> Ulak:
    section = {"allow": "127.0.0.0/8", "slots_per_destination": 100}
    return Ulak(settings=Settings(store=store, notify={"capacity": CAPACITY}, channels={"webhook": section}))


async def make_plan(ulak: Ulak, hook: str, steps: list[dict[str, Any]] = STEPS) -> int:
    directory = ulak.actions.directory
    profile = await directory.create_profile({"name": "Ops"})
    channel = await directory.create_channel({"profile_id": profile.id, "channel_type": "webhook", "target": hook})
    await directory.trust(channel.id)
    _, plan = await ulak.actions.plans.create({"name": "Pump", "steps": steps})
    for step in steps:
        await directory.create_route(
            {"action_plan_id": plan.id, "step_order": step["step_order"], "recipient_profile_id": profile.id}
        )
    return plan.id


async def _at_once(store: str, number: int) -> tuple[float, float]:
    """Seconds until the last first step has arrived, and until the last of as many notify webhooks has."""
    arrivals = Arrivals()
    hook = await arrivals.open()
    async with ulak_on(store) as ulak:
        plan = await make_plan(ulak, hook)
        spare_the_collector()  # as `ulak serve` does
        begins = time.perf_counter()
        await asyncio.gather(*(ulak.notify.send("WEBHOOK", hook, str(n)) for n in range(number)))
        await arrivals.all(number)
        notify = max(arrivals.at.values()) - begins
        arrivals.at, arrivals.number = {}, 0
        begins = time.perf_counter()
        await asyncio.gather(
            *(ulak.actions.request(plan, f"e-{n}", device_id="D1", variables={"n": n}) for n in range(number))
        )
        await arrivals.all(2 * number)
        firsts = max(at for mark, at in arrivals.at.items() if mark.startswith("1:")) - begins
    return firsts, notify


async def _steady(store: str, seconds: float) -> list[float]:
    arrivals = Arrivals()
    hook = await arrivals.open()
    number = round(RATE * seconds)
    asked: dict[str, float] = {}
    async with ulak_on(store) as ulak:
        plan = await make_plan(ulak, hook)
        spare_the_collector()
        loop, tasks = asyncio.get_running_loop(), []
        begins = loop.time()
        for n in range(number):
            await asyncio.sleep(max(begins + n / RATE - loop.time(), 0))
            asked[f"1:{n}"] = time.perf_counter()
            tasks.append(asyncio.create_task(ulak.actions.request(plan, f"s-{n}", variables={"n": n})))
        await asyncio.gather(*tasks)
        await arrivals.all(2 * number)
    return [arrivals.at[mark] - at for mark, at in asked.items()]


if __name__ == "__main__":
    report.alone("actions_plans", rows)
