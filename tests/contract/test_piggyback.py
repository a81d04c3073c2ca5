"""A claim that waits for work joins the commit that makes some ready."""

from __future__ import annotations

import asyncio

from tests.contract.bench import Bench
from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.outcome import Retry
from ulak.spine.store import Verb, WriterQueue
from ulak.spine.units.rescue import RESCUE, Lost


def ids_of(claimed):
    return [lease.id for lease in claimed.leases]


async def test_what_becomes_due_is_claimed_by_the_commit_that_makes_it_ready(bench: Bench):
    waiting = await bench.add()
    soon = [await bench.add(due_at=bench.clock.now() + 1000, prio=prio) for prio in (2, 3)]
    other = await bench.add("other", due_at=bench.clock.now() + 1000)
    later = await bench.add(due_at=bench.clock.now() + 9000)
    bench.clock.advance(1)
    piggyback = bench.piggyback()
    assert await bench.promote_due() == bench.clock.now() + 8000
    assert sorted(ids_of(await piggyback)) == sorted([waiting, *soon])
    assert [lease.id for lease in await bench.claim("other")] == [other]
    bench.clock.advance(8)
    piggyback = bench.piggyback()
    await bench.promote_due()
    assert ids_of(await piggyback) == [later]


async def test_jobs_beyond_the_capacity_are_left_for_the_next_claim(bench: Bench):
    soon = [await bench.add(due_at=bench.clock.now() + 1000) for _ in range(5)]
    bench.clock.advance(1)
    bench.ears.ready.clear()
    piggyback = bench.piggyback(free=3)
    await bench.promote_due()
    assert ids_of(await piggyback) == soon[:3]
    assert ("mail", 2) in bench.ears.ready  # somebody has to be told of the rest
    assert [lease.id for lease in await bench.claim()] == soon[3:]


async def test_what_was_taken_along_wakes_nobody(bench: Bench):
    await bench.add(due_at=bench.clock.now() + 1000)
    bench.clock.advance(1)
    bench.ears.ready.clear()
    piggyback = bench.piggyback()
    await bench.promote_due()
    assert len((await piggyback).leases) == 1
    assert bench.ears.ready == set()


async def test_a_waiting_claim_leaves_the_suspects_and_their_wake_up_to_others(bench: Bench):
    lost = await bench.add()
    await bench.claim()
    bench.ears.ready.clear()
    piggyback = bench.piggyback()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, poison_deaths=3))
    assert ids_of(await piggyback) == []
    assert ("mail", SUSPECT_LEVEL) in bench.ears.ready
    assert [lease.id for lease in await bench.claim_suspects()] == [lost]


async def test_the_next_of_a_key_is_claimed_by_the_commit_that_frees_its_slot(bench: Bench):
    first, second = [await bench.add(key="ada") for _ in range(2)]
    leases = await bench.claim()
    assert [lease.id for lease in leases] == [first]
    piggyback = bench.piggyback()
    await bench.settle(leases)
    assert ids_of(await piggyback) == [second]


async def test_a_commit_that_makes_nothing_ready_leaves_the_claim_where_it_is(bench: Bench):
    await bench.add()
    leases = await bench.claim()
    piggyback = bench.piggyback()
    await bench.settle(leases, Retry(after_seconds=1), resume_at=bench.clock.now() + 1000)
    assert not piggyback.done()
    bench.clock.advance(1)
    await bench.promote_due()
    assert len((await piggyback).leases) == 1


async def test_a_withdrawn_piggyback_hears_that_there_was_nothing(bench: Bench):
    piggyback = bench.piggyback()
    bench.store.withdraw_piggyback()
    assert await piggyback is None
    identifier = await bench.add()
    assert [lease.id for lease in await bench.claim()] == [identifier]  # nobody took it along


async def test_an_answer_that_nobody_waits_for_any_more_harms_nobody(bench: Bench):
    bench.piggyback().cancel()
    bench.store.withdraw_piggyback()
    assert await bench.add() > 0


async def test_a_waiting_claim_is_served_when_its_batch_has_to_be_run_again(bench: Bench):
    """One unit leaves what can't be written: that shows at the commit, and each, the claim too, then runs alone."""
    soon = await bench.add(due_at=bench.clock.now() + 1000)
    bench.clock.advance(1)
    spoil = Verb(WriterQueue.TIMERS, lambda tx, items: [tx.emit("odd", 1, "mail", object()) for _ in items])
    piggyback = bench.piggyback()
    promoted, spoiled = await asyncio.gather(
        bench.promote_due(), bench.store.submit(spoil, None), return_exceptions=True
    )
    assert promoted is None
    assert isinstance(spoiled, Exception)
    assert ids_of(await piggyback) == [soon]
    assert bench.store.gauges()["reruns_total"] == 1
