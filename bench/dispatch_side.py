"""The sides that the dispatch figures measure, each in a process of its own: searches, verbs, positions, deadlines."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import uvloop

from bench.peers.near_side import NearPeer
from ulak import Ulak, codec
from ulak.cli.process import spare_the_collector
from ulak.dispatch import records
from ulak.dispatch.forms import read_positions
from ulak.dispatch.model import Contact, Helper
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.dispatch.nearby.search import Circle, keep_plan, search
from ulak.dispatch.world import WorldChanges
from ulak.settings import Settings

MAX_POSITIONS = 10_000
TOWN = (41.0, 29.0)
FILL_SLICE = 2_000


def address_of(place: str) -> str:
    return place if "://" in place else f"sqlite:///{place}"


def ulak_at(place: str, *, work: bool = False, **settings: Any) -> Ulak:
    address = address_of(place)
    return Ulak(address, settings=Settings(store=address, dispatch=settings, log={"level": "error"}), work=work)


def spots(kind: str, number: int, seed: int = 1) -> list[tuple[float, float]]:
    """Uniform: 100 helpers per square kilometre. Clustered: around a hundred centres of the same area."""
    chance = random.Random(seed)
    side = (number / 100) ** 0.5 / 111.0  # degrees
    if kind == "uniform":
        return [(TOWN[0] + chance.uniform(0, side), TOWN[1] + chance.uniform(0, side * 1.32)) for _ in range(number)]
    centres = [(chance.uniform(0, side), chance.uniform(0, side * 1.32)) for _ in range(100)]
    near = (chance.choice(centres) for _ in range(number))
    return [(TOWN[0] + lat + chance.gauss(0, 0.01), TOWN[1] + lng + chance.gauss(0, 0.01)) for lat, lng in near]


async def fill(ulak: Ulak, places: list[tuple[float, float]]) -> None:
    now, month = ulak.store.clock.now(), ulak.dispatch.policy.month(ulak.store.clock.now())
    chance = random.Random(2)
    for start in range(0, len(places), FILL_SLICE):
        made = {}
        for number, spot in enumerate(places[start : start + FILL_SLICE], start + 1):
            name = f"h{number:07}"
            made[number] = Helper(
                number, name, latitude=to_nano(spot[0]), longitude=to_nano(spot[1]), point=point_at(*spot),
                position_at=now, month=month, completed=chance.randrange(20), contact=Contact("IN_APP", name),
            )  # fmt: skip
        await ulak.store.write(records.save, WorldChanges(new_helpers=made))


def searches(
    place: str, kind: str, helpers: int, asked: int, peers: list[tuple[type[NearPeer], str]]
) -> dict[str, Any]:
    """Milliseconds for the top 20 within a kilometre, by us and by each peer in turn: all meet the same machine.

    A peer comes with the address of its database, or with "" for the one of ours.
    """

    async def run() -> dict[str, Any]:
        async with ulak_at(place) as ulak:
            places, chance = spots(kind, helpers), random.Random(2)
            await fill(ulak, places)
            rows = [(*spot, chance.randrange(20)) for spot in places] if peers else []
            found: dict[str, list[float]] = {"ulak": []}
            with ExitStack() as stack:
                sides = [stack.enter_context(peer(address or place)) for peer, address in peers]
                for side in sides:
                    side.fill(rows)
                for spot in random.Random(3).sample(places, asked):
                    found["ulak"].append(await ulak.store.read(_timed, spot, ulak.dispatch.policy))
                    for side in sides:
                        found.setdefault(side.name, []).append(side.search(*spot, 1000.0))
            return found

    return uvloop.run(run())


def _timed(tx: Any, spot: tuple[float, float], policy: Any) -> float:
    began = time.perf_counter()
    keep_plan(tx)
    search(tx, Circle(point_at(*spot), 1000.0), policy, 20)
    return (time.perf_counter() - began) * 1000


def verbs(place: str, number: int, callers: int) -> dict[str, float]:
    """Durable enqueues, opens and accepts per second, in one run."""

    async def run() -> dict[str, float]:
        async with ulak_at(place) as ulak:
            side = max(number, 1) ** 0.5 / 100  # about one task per square kilometre, whatever their number
            chance = random.Random(4)
            homes = [(41 + chance.uniform(0, side), 29 + chance.uniform(0, side)) for _ in range(number)]
            await fill(ulak, [spot for spot in homes for _ in range(2)])
            spare_the_collector()  # as `ulak serve` does
            rates = {"enqueue": await in_turn(callers, [to_call(ulak.enqueue, "bench.job", {"a": 1})] * (4 * number))}
            views: list[Any] = []
            rates["open"] = await in_turn(
                callers, [to_call(ulak.dispatch.open, task_at(spot)) for spot in homes], views
            )
            answers = [
                to_call(ulak.dispatch.accept, view.task.id, view.pending[0].helper) for view in views if view.pending
            ]
            rates["accept"] = await in_turn(callers, answers)
            return rates

    return uvloop.run(run())


def task_at(spot: tuple[float, float]) -> dict[str, Any]:
    return {"requesterId": "r", "category": "c", "latitude": spot[0], "longitude": spot[1], "radiusMeters": 1000}


def to_call(verb: Any, *arguments: Any) -> Any:
    return lambda: verb(*arguments)


async def in_turn(callers: int, calls: list[Any], answers: list[Any] | None = None) -> float:
    """So many at a time; returns how many came to their end in a second."""
    waiting = iter(calls)

    async def caller() -> None:
        for call in waiting:
            answer = await call()
            if answers is not None:
                answers.append(answer)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(calls) / (time.perf_counter() - began)


def positions(place: str, helpers: int, seconds: float) -> dict[str, float]:
    """Positions accepted and written per second, and what an accept takes meanwhile and without them."""

    async def run() -> dict[str, float]:
        async with ulak_at(place) as ulak:
            places = spots("uniform", helpers)
            await fill(ulak, places)
            spare_the_collector()
            alone = await _accepts(ulak, places[:200])
            bodies, taken, written, ended = _bodies(places), 0, 0, 0.0
            stop = asyncio.Event()

            async def send() -> None:
                nonlocal taken
                for body in cycle(bodies):
                    due = time.perf_counter() + 0.09
                    positions = read_positions(body, MAX_POSITIONS)
                    await ulak.dispatch.move_many(positions)
                    taken += len(positions)
                    await asyncio.sleep(max(due - time.perf_counter(), 0))
                    if stop.is_set():
                        return

            async def write() -> None:
                nonlocal written, ended
                while not stop.is_set():  # the last flush is counted with its time
                    written += await ulak.dispatch.flush_positions()
                    ended = time.perf_counter()
                    await asyncio.sleep(0.01)

            began = time.perf_counter()
            tasks = [asyncio.create_task(send()), asyncio.create_task(write())]
            beside = await _accepts(ulak, places[200:400])
            await asyncio.sleep(max(seconds - (time.perf_counter() - began), 0))
            stop.set()
            took = time.perf_counter() - began
            await asyncio.gather(*tasks)
            written_per_second = written / (ended - began)
            return {"taken": taken / took, "written": written_per_second, "alone_ms": alone, "beside_ms": beside}

    return uvloop.run(run())


def _bodies(places: list[tuple[float, float]]) -> list[bytes]:
    """Bodies of POST /helpers/positions, as a gateway would send them: 5,000 helpers of all, each a little further."""
    chance, found = random.Random(5), []
    for step in range(40):
        some = chance.sample(range(len(places)), min(5_000, len(places)))
        rows = [(f"h{one + 1:07}", places[one][0] + step * 1e-5, places[one][1]) for one in some]
        found.append(codec.encode([{"id": name, "latitude": lat, "longitude": lng} for name, lat, lng in rows]))
    return found


async def _accepts(ulak: Ulak, places: list[tuple[float, float]]) -> float:
    """The 99th percentile of an accept, in milliseconds, one after another."""
    took = []
    for spot in places:
        view = await ulak.dispatch.open(task_at(spot))
        if view.pending:
            began = time.perf_counter()
            await ulak.dispatch.accept(view.task.id, view.pending[0].helper)
            took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[int(len(took) * 0.99)]
