"""The sides that the dispatch figures measure, each in a process of its own: searches, verbs, positions, deadlines."""

from __future__ import annotations

import asyncio
import random
import time
from itertools import cycle
from typing import Any

from bench.peers.gist_side import GistPeer
from ulak import Ulak, codec
from ulak.dispatch import records
from ulak.dispatch.forms import read_positions
from ulak.dispatch.model import Contact, Helper
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.dispatch.nearby.search import Circle, search
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


def searches(place: str, kind: str, helpers: int, asked: int) -> list[float]:
    """Milliseconds for the top 20 within a kilometre, inside a read."""

    async def run() -> list[float]:
        async with ulak_at(place) as ulak:
            places = spots(kind, helpers)
            await fill(ulak, places)
            centres = random.Random(3).sample(places, asked)
            policy = ulak.dispatch.policy
            return [await ulak.store.read(_timed, spot, policy) for spot in centres]

    return asyncio.run(run())


def searches_beside_gist(place: str, kind: str, helpers: int, asked: int) -> tuple[list[float], list[float]]:
    """The same searches by us and by a GiST index on points, in turn, so that both meet the same machine."""

    async def run() -> tuple[list[float], list[float]]:
        async with ulak_at(place) as ulak:
            places, chance = spots(kind, helpers), random.Random(2)
            await fill(ulak, places)
            ours, theirs = [], []
            with GistPeer(place) as peer:
                peer.fill([(*spot, chance.randrange(20)) for spot in places])
                for spot in random.Random(3).sample(places, asked):
                    ours.append(await ulak.store.read(_timed, spot, ulak.dispatch.policy))
                    theirs.append(peer.search(*spot, 1000.0))
            return ours, theirs

    return asyncio.run(run())


def _timed(tx: Any, spot: tuple[float, float], policy: Any) -> float:
    began = time.perf_counter()
    search(tx, Circle(point_at(*spot), 1000.0), policy, 20)
    return (time.perf_counter() - began) * 1000


def verbs(place: str, number: int, callers: int) -> dict[str, float]:
    """Durable enqueues, opens and accepts per second, in one run."""

    async def run() -> dict[str, float]:
        async with ulak_at(place) as ulak:
            side = max(number, 1) ** 0.5 / 100  # a hundred tasks per square kilometre and more
            chance = random.Random(4)
            homes = [(41 + chance.uniform(0, side), 29 + chance.uniform(0, side)) for _ in range(number)]
            await fill(ulak, [spot for spot in homes for _ in range(2)])
            rates = {"enqueue": await _rate(callers, [_call(ulak.enqueue, "bench.job", {"a": 1})] * (4 * number))}
            views: list[Any] = []
            rates["open"] = await _rate(callers, [_call(ulak.dispatch.open, _task(spot)) for spot in homes], views)
            answers = [
                _call(ulak.dispatch.accept, view.task.id, view.pending[0].helper) for view in views if view.pending
            ]
            rates["accept"] = await _rate(callers, answers)
            return rates

    return asyncio.run(run())


def _task(spot: tuple[float, float]) -> dict[str, Any]:
    return {"requesterId": "r", "category": "c", "latitude": spot[0], "longitude": spot[1], "radiusMeters": 1000}


def _call(verb: Any, *arguments: Any) -> Any:
    return lambda: verb(*arguments)


async def _rate(callers: int, calls: list[Any], answers: list[Any] | None = None) -> float:
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
            alone = await _accepts(ulak, places[:200])
            bodies, taken, written = _bodies(places), 0, 0
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
                nonlocal written
                while not stop.is_set():
                    written += await ulak.dispatch.flush_positions()
                    await asyncio.sleep(0.01)

            began = time.perf_counter()
            tasks = [asyncio.create_task(send()), asyncio.create_task(write())]
            beside = await _accepts(ulak, places[200:400])
            await asyncio.sleep(max(seconds - (time.perf_counter() - began), 0))
            stop.set()
            took = time.perf_counter() - began
            await asyncio.gather(*tasks)
            return {"taken": taken / took, "written": written / took, "alone_ms": alone, "beside_ms": beside}

    return asyncio.run(run())


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
        view = await ulak.dispatch.open(_task(spot))
        if view.pending:
            began = time.perf_counter()
            await ulak.dispatch.accept(view.task.id, view.pending[0].helper)
            took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[int(len(took) * 0.99)]


def lateness(place: str, offers: int, per_second: int, seconds: float) -> list[float]:
    """Milliseconds from an offer's deadline to its end, with many more open offers in the table."""

    async def run() -> list[float]:
        async with ulak_at(place, work=True, searches=1) as ulak:
            spread = [(41 + one * 0.02 % 20, 29 + one // 1000 * 0.02) for one in range(offers)]
            await fill(ulak, spread)
            soon = set(random.Random(6).sample(range(offers), round(per_second * seconds)))
            await _rate(200, [_call(ulak.dispatch.open, {**_task(spot), "deadlineSeconds": 86_400})
                              for at, spot in enumerate(spread) if at not in soon])  # fmt: skip
            due = [_call(ulak.dispatch.open, {**_task(spread[at]), "deadlineSeconds": 2 + place_ / per_second})
                   for place_, at in enumerate(sorted(soon))]  # fmt: skip
            await _rate(200, due)
            await asyncio.sleep(seconds + 4)
            rows = await ulak.store.read(lambda tx: tx.rows(_LATENESS))
            return [float(late) for (late,) in rows]

    return asyncio.run(run())


def _lateness_query() -> Any:
    from ulak.spine.query import Query

    text = "SELECT ended_at - deadline_at FROM dispatch_offer WHERE state = 'EXPIRED'"
    return Query("lateness", text, text, ())


_LATENESS = _lateness_query()
