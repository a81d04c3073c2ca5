"""Searches on both stores: as the rule in Python ranks, at the edges of the map, and with many at one place."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tests.dispatch.conftest import HERE, request, settle_in
from ulak import Ulak
from ulak.clock import ManualClock, to_millis
from ulak.dispatch import records
from ulak.dispatch.model import Helper, HelpTask, SearchResult, TaskState
from ulak.dispatch.nearby.eligible import obstacle, rank, to_candidate
from ulak.dispatch.nearby.geo import chord_of, point_at, to_nano
from ulak.dispatch.nearby.search import MAX_READS, Circle, Searches, search
from ulak.dispatch.policy import NEVER, Policy
from ulak.dispatch.world import WorldChanges
from ulak.settings import Settings

CENTRE = (41.0, 29.0)


def somebody(chance: random.Random, number: int, month: int, now: int) -> Helper:
    helper = Helper(number + 1, f"h{chance.randrange(10**6)}-{number}")
    spot = (CENTRE[0] + chance.gauss(0, 0.01), CENTRE[1] + chance.gauss(0, 0.01))
    helper.latitude, helper.longitude = map(to_nano, spot)
    helper.point = point_at(*spot) if chance.random() < 0.95 else None
    helper.position_at = now - chance.choice([0, 1000, 86_400_000, 86_400_001])
    helper.active, helper.doing = chance.random() < 0.9, chance.choice([0, 0, 0, 0, 1, 2])
    helper.skills = tuple(sorted(chance.sample(["car", "first aid", "violin"], chance.randrange(4))))
    helper.month = month - chance.choice([0, 0, 1])
    helper.completed, helper.expired, helper.timeouts = (chance.randrange(4) for _ in range(3))
    return helper


def expected(helpers, circle, policy, now):
    month, limit = policy.month(now), chord_of(circle.radius)
    near = [
        (to_candidate(one, circle.centre, month, policy), obstacle(one, circle.skills, circle.asked, now, policy))
        for one in helpers
        if one.point is not None
    ]
    near = [(candidate, why) for candidate, why in near if candidate.chord <= limit]
    counts: dict[str, int] = {}
    for _, why in near:
        if why is not None:
            counts[why] = counts.get(why, 0) + 1
    return sorted((one for one, why in near if why is None), key=rank), counts


@pytest.mark.parametrize("seed", range(4))
async def test_the_store_ranks_and_excludes_as_the_rule_does(ulak, seed):
    chance, now = random.Random(seed), ulak.store.clock.now()
    rules = [Policy(time_zone="UTC"), Policy(expiry_weight=0, pause_after=NEVER, time_zone="UTC")]
    month = rules[0].month(now)
    helpers = [somebody(chance, number, month, now) for number in range(600)]
    changes = WorldChanges(new_helpers={one.id: one for one in helpers})
    await ulak.store.write(records.save, changes)
    for policy in rules:
        for radius in (1.0, 300.0, 1500.0, 50_000.0):
            for skills in ((), ("car",), ("car", "first aid")):
                circle = Circle(point_at(*CENTRE), radius, skills, asked=(3, 5, 8, 13))
                found = await ulak.store.read(search, circle, policy)
                ranked, counts = expected(helpers, circle, policy, now)
                assert list(found.candidates) == ranked[: policy.max_candidates]
                assert found.counts == counts
                assert len(found.excluded) == min(sum(counts.values()), 50)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ((90.0, 0.0), (89.9995, 137.0)),
        ((-90.0, 0.0), (-89.9995, -45.0)),
        ((0.0, 180.0), (0.0, -179.9995)),
        ((16.5, -179.9999), (16.5, 179.9999)),
    ],
    ids=["north pole", "south pole", "antimeridian", "antimeridian from the west"],
)
async def test_somebody_across_an_edge_of_the_map_is_found(ulak, here, there):
    await ulak.dispatch.put_helper("there", {"latitude": there[0], "longitude": there[1]})
    view = await ulak.dispatch.open(request(latitude=here[0], longitude=here[1], radiusMeters=100))
    assert [one.helper for one in view.pending] == ["there"]


async def test_a_radius_of_one_metre_and_the_largest_are_exact(make):
    async with make(max_radius_meters=20_100_000) as ulak:
        await ulak.dispatch.put_helper("near", {"latitude": 41.0 + 8e-6, "longitude": 29.0})  # 0.9 m
        await ulak.dispatch.put_helper("next", {"latitude": 41.0 + 10e-6, "longitude": 29.0})  # 1.1 m
        await ulak.dispatch.put_helper("far", {"latitude": -41.0, "longitude": -151.0})  # the other side of the globe
        near = await ulak.dispatch.open(request(radiusMeters=1))
        assert ([one.helper for one in near.pending], near.waiting) == (["near"], ())
        wide = await ulak.dispatch.open(request(radiusMeters=20_100_000))
        assert ([one.helper for one in wide.pending], wide.waiting) == (["next"], ("far",))


async def test_ten_thousand_at_one_point_are_asked_in_the_order_of_their_ids(ulak):
    now = ulak.store.clock.now()
    helpers = [
        Helper(number + 1, f"h{number:05}", latitude=to_nano(41.0), longitude=to_nano(29.0),
               point=point_at(41.0, 29.0), position_at=now)
        for number in range(10_000)
    ]  # fmt: skip
    random.Random(1).shuffle(helpers)
    await ulak.store.write(records.save, WorldChanges(new_helpers={one.id: one for one in helpers}))
    view = await ulak.dispatch.open(request(width=50))
    assert [one.helper for one in view.pending] == [f"h{number:05}" for number in range(50)]
    assert len(view.waiting) == 950  # max_candidates
    explained = await ulak.dispatch.explain(view.task.id)
    assert len(explained[0].ranked) == 50
    assert {one.reason for one in explained[0].ranked} == {"first", "id"}


async def test_a_month_begins_where_the_helpers_are(address):
    clock = ManualClock(datetime(2027, 1, 31, 20, 0, tzinfo=UTC))  # an hour before February in Istanbul
    given = Settings(store=address, dispatch={"time_zone": "Europe/Istanbul"})
    async with Ulak(address, settings=given, clock=clock) as ulak:
        await ulak.dispatch.put_helper("a", HERE)
        task = (await ulak.dispatch.open(request())).task.id
        await ulak.dispatch.accept(task, "a")
        await ulak.dispatch.complete(task, "a")
        policy = ulak.dispatch.policy
        assert (await ulak.dispatch.helper("a")).completed_in(policy.month(clock.now())) == 1
        clock.advance(3600)
        assert (await ulak.dispatch.helper("a")).completed_in(policy.month(clock.now())) == 0
        assert policy.month(clock.now()) == policy.month(to_millis(datetime(2027, 2, 1, tzinfo=UTC)))


async def test_nobody_in_the_circle_is_explained_too(ulak):
    await ulak.dispatch.put_helper("away", {"latitude": 41.0, "longitude": 29.0, "isActive": False})
    view = await ulak.dispatch.open(request())
    assert view.task.state is TaskState.TIMED_OUT
    first = (await ulak.dispatch.explain(view.task.id))[0]
    assert (first.ranked, first.counts) == ((), {"inactive": 1})
    assert [(one.helper, one.reason) for one in first.excluded] == [("away", "inactive")]


async def test_searches_that_take_long_do_not_keep_the_others_of_their_read_waiting(ulak, monkeypatch):
    monkeypatch.setattr("ulak.dispatch.nearby.search.READ_SECONDS", -1.0)  # one of each read, the rest goes on
    names = await settle_in(ulak, 5)
    views = await asyncio.gather(*(ulak.dispatch.open(request()) for _ in names))
    assert sorted(one.helper for view in views for one in view.pending) == names


async def test_a_search_that_comes_as_the_last_reads_end_is_not_left_waiting():
    reads: list[asyncio.Future[list[SearchResult]]] = []

    class Reads:
        def read(self, *_: Any) -> asyncio.Future[list[SearchResult]]:
            reads.append(asyncio.get_running_loop().create_future())
            return reads[-1]

    searches = Searches(cast("Any", Reads), Policy())
    task = HelpTask(1, "ayse", "market", 0, 0, 1000, 600, 1, 0)
    asks = []
    async with asyncio.timeout(5):
        for number in range(MAX_READS):
            asks.append(asyncio.ensure_future(searches.find(task)))
            while len(reads) == number:
                await asyncio.sleep(0)
        for read in reads:
            read.set_result([SearchResult(0, 1000)])
        asks.append(asyncio.ensure_future(searches.find(task)))  # in the round of the loop in which the reads end
        while len(reads) == MAX_READS:
            await asyncio.sleep(0)
        reads[-1].set_result([SearchResult(0, 1000)])
        assert len(await asyncio.gather(*asks)) == MAX_READS + 1
