"""Unique keys and slots on every store: one live job per unique key, order and bounds per key."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.bench import Bench, ids_of
from ulak.spine.outcome import Dead, Done, Release, Retry
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.spine.units.slots import PROMOTE_STRANDED


async def test_a_taken_unique_key_answers_its_holder(bench: Bench):
    first = await bench.add(unique_key="u")
    assert await bench.add(unique_key="u") == first
    assert await bench.add("sms", unique_key="u") != first
    assert await bench.live() == {"mail": 1, "sms": 1}


async def test_concurrent_callers_of_one_unique_key_get_one_job(bench: Bench):
    found = await asyncio.gather(*(bench.add(unique_key="u") for _ in range(20)))
    assert len(set(found)) == 1
    assert await bench.live() == {"mail": 1}


async def test_a_unique_key_is_free_again_when_its_job_has_left(bench: Bench):
    first = await bench.add(unique_key="u")
    await bench.settle(await bench.claim())
    assert await bench.add(unique_key="u") != first


async def test_the_same_unique_key_twice_in_one_call_is_one_job(bench: Bench):
    ids = await bench.offer(bench.row(unique_key="u"), bench.row(unique_key="u"), bench.row())
    assert isinstance(ids, list)
    assert ids[0] == ids[1] != ids[2]
    assert await bench.live() == {"mail": 2}


async def test_jobs_of_one_key_run_one_at_a_time_and_in_order(bench: Bench):
    added = [await bench.add(key="k") for _ in range(4)]
    seen = []
    while leases := await bench.claim():
        assert len(leases) == 1
        seen += ids_of(leases)
        await bench.settle(leases)
    assert seen == added


async def test_a_key_with_more_slots_is_a_bulkhead(bench: Bench):
    await bench.offer(*[bench.row(key="k", slots=3) for _ in range(5)])
    first = await bench.claim()
    assert len(first) == 3
    await bench.settle(first[:1])
    assert len(await bench.claim()) == 1


async def test_behind_one_slot_the_order_is_that_of_arrival_whatever_is_urgent(bench: Bench):
    first, late, urgent = [await bench.add(key="k", prio=prio) for prio in (2, 3, 0)]
    seen = []
    while leases := await bench.claim():
        seen += ids_of(leases)
        await bench.settle(leases)
    assert seen == [first, late, urgent]


@pytest.mark.parametrize("freed", [1, 2])
async def test_behind_several_slots_the_most_urgent_goes_first(bench: Bench, freed):
    await bench.offer(*[bench.row(key=key, slots=2) for key in ("k", "k", "other", "other")])
    held = await bench.claim()
    _, normal, urgent = [await bench.add(key="k", slots=2, prio=prio) for prio in (3, 2, 0)]
    await bench.settle(held[:freed] + held[2:])
    assert {lease.id for lease in await bench.claim()} == set([urgent, normal][:freed])


async def test_other_keys_are_not_held_up(bench: Bench):
    await bench.offer(*[bench.row(key="a") for _ in range(3)], bench.row(key="b"), bench.row())
    assert len(await bench.claim()) == 3


async def test_a_retry_keeps_its_slot_and_blocks_its_key(bench: Bench):
    first = await bench.add(key="k")
    await bench.add(key="k")
    await bench.settle(await bench.claim(), Retry(), resume_at=bench.clock.now() + 1000)
    assert await bench.claim() == []
    bench.clock.advance(1)
    await bench.promote_due()
    assert ids_of(await bench.claim()) == [first]


async def test_a_released_job_keeps_its_place(bench: Bench):
    first = await bench.add(key="k")
    await bench.add(key="k")
    await bench.settle(await bench.claim(), Release())
    assert ids_of(await bench.claim()) == [first]


async def test_a_dead_letter_frees_its_key(bench: Bench):
    await bench.add(key="k")
    second = await bench.add(key="k")
    await bench.settle(await bench.claim(), Dead("no"))
    assert ids_of(await bench.claim()) == [second]


async def test_an_expired_job_hands_its_slot_on(bench: Bench):
    await bench.add(key="k", expires_at=bench.clock.now() + 10)
    second = await bench.add(key="k")
    bench.clock.advance(1)
    assert await bench.claim() == []
    assert ids_of(await bench.claim()) == [second]


async def test_a_cancelled_job_hands_its_slot_on(bench: Bench):
    first = await bench.add(key="k")
    second = await bench.add(key="k")
    assert await bench.store.submit(CANCEL, first) == "cancelled"
    assert ids_of(await bench.claim()) == [second]


async def test_a_deferred_keyed_job_joins_the_line_when_it_is_due(bench: Bench):
    later = await bench.add(key="k", due_at=bench.clock.now() + 100)
    now = await bench.add(key="k")
    behind = await bench.add(key="k")
    bench.clock.advance(1)
    await bench.promote_due()
    seen = []
    while leases := await bench.claim():
        seen += ids_of(leases)
        await bench.settle(leases)
    assert seen[0] == now
    assert sorted(seen[1:]) == sorted([later, behind])


async def test_a_deferred_keyed_job_that_finds_its_slot_free_is_announced_when_it_is_due(bench: Bench):
    await bench.add(key="k", due_at=bench.clock.now() + 1000)
    bench.clock.advance(1)
    await bench.promote_due()
    assert bench.ears.ready == {("mail", 2)}


async def test_many_settled_at_once_hand_all_their_slots_on(bench: Bench):
    await bench.offer(*[bench.row(key=f"k{index % 10}", slots=2) for index in range(60)])
    rounds = []
    while leases := await bench.claim():
        rounds.append(len(leases))
        await bench.settle(leases, Done())
    assert rounds == [20, 20, 20]


async def test_nothing_stands_behind_a_free_slot(bench: Bench):
    await bench.offer(*[bench.row(key=f"k{index % 3}") for index in range(9)])
    assert await bench.store.submit(PROMOTE_STRANDED, "") is None
    assert len(await bench.claim()) == 3


async def test_a_crashed_job_that_was_put_off_without_its_slot_comes_back_as_a_suspect(bench: Bench):
    crashed = await bench.add(key="k", slots=2)
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    await bench.settle(await bench.claim_suspects(), Retry(), resume_at=bench.clock.now() + 1000)
    bench.clock.advance(1)
    await bench.promote_due()
    assert await bench.claim() == []
    assert ids_of(await bench.claim_suspects()) == [crashed]
