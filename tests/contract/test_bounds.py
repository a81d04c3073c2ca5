"""Two bounds per kind on every store: active and live jobs, the share of a key, and what is owed."""

from __future__ import annotations

import math

import pytest

from tests.contract.bench import Bench, ids_of
from ulak.spine.capacity import live_pool
from ulak.spine.outcome import Retry
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.enqueue import Full

BOUNDS = {"mail": 2, live_pool("mail"): 9}


async def accepted(bench: Bench, number: int, **columns) -> int:
    verdicts = [await bench.offer(bench.row(**columns)) for _ in range(number)]
    return sum(not isinstance(one, Full) for one in verdicts)


async def refusal(bench: Bench, **columns) -> Full:
    verdict = await bench.offer(bench.row(**columns))
    assert isinstance(verdict, Full)
    return verdict


async def test_what_is_for_later_or_stands_behind_needs_only_the_live_bound(opened, address):
    async with opened(address, bounds=BOUNDS) as bench:
        later = bench.clock.now() + 60_000
        assert await accepted(bench, 1, key="k") == 1
        assert await accepted(bench, 5) == 1
        assert await refusal(bench) == Full("mail", 1)
        assert await accepted(bench, 2, key="k") == 2  # behind
        assert await accepted(bench, 9, due_at=later) == 5
        assert await refusal(bench, due_at=later) == Full("mail", 1, live=True)


async def test_a_retry_is_parked_and_makes_place_for_another(opened, address):
    async with opened(address, bounds=BOUNDS) as bench:
        assert await accepted(bench, 3) == 2
        await bench.settle(await bench.claim(), Retry(), resume_at=bench.clock.now() + 1000)
        assert await accepted(bench, 3) == 2


async def test_what_is_due_is_never_refused_and_only_new_work_waits_for_it(opened, address):
    async with opened(address, bounds=BOUNDS) as bench:
        assert await accepted(bench, 5, due_at=bench.clock.now() + 1000) == 5
        bench.clock.advance(1)
        await bench.promote_due()
        leases = await bench.claim()
        assert len(leases) == 5
        await bench.settle(leases[:3])
        assert await refusal(bench) == Full("mail", 1)
        await bench.settle(leases[3:4])
        assert await accepted(bench, 3) == 1


async def test_a_key_parks_as_many_as_its_kind_has_free(opened, address):
    async with opened(address, bounds={"mail": 100, live_pool("mail"): 20}) as bench:
        assert await accepted(bench, 20, key="dead") == 11  # one of them has its slot, and half of the rest waits
        assert await refusal(bench, key="dead") == Full("mail", 1, live=True, key="dead")
        assert await accepted(bench, 20, key="other") == 5
        assert await accepted(bench, 1, key="third") == 1
        assert await accepted(bench, 1) == 1


async def test_a_batch_beyond_the_share_of_a_key_takes_nothing_and_frees_its_slots(opened, address):
    async with opened(address, bounds={"mail": 100, live_pool("mail"): 20}) as bench:
        verdict = await bench.offer(*[bench.row(key="k", slots=2) for _ in range(15)])
        assert isinstance(verdict, Full)
        assert verdict.key == "k"
        assert await bench.live() == {}
        assert not isinstance(await bench.offer(*[bench.row(key="k", slots=2) for _ in range(5)]), Full)
        assert len(await bench.claim()) == 2


@pytest.mark.parametrize("leaves", ["claimed", "cancelled"])
async def test_a_share_is_free_again_when_its_jobs_go(opened, address, leaves):
    async with opened(address, bounds={"mail": 100, live_pool("mail"): 9}) as bench:
        jobs = [await bench.add(key="k") for _ in range(5)]
        assert (await refusal(bench, key="k")).key == "k"
        if leaves == "claimed":
            await bench.settle(await bench.claim())
        else:
            await bench.store.submit(CANCEL, jobs[-1])
        assert await accepted(bench, 1, key="k") == 1
        assert (await refusal(bench, key="k")).key == "k"


async def test_bounds_and_shares_are_counted_again_after_a_restart(opened, address):
    if address == "memory:":
        return
    bounds = {"mail": 3, live_pool("mail"): 12}
    async with opened(address, bounds=bounds) as bench:
        assert await accepted(bench, 6, key="k") == 6
        assert await accepted(bench, 1, due_at=bench.clock.now() + 60_000) == 1
    async with opened(address, bounds=bounds) as bench:
        assert (await refusal(bench, key="k")).key == "k"
        assert await accepted(bench, 3) == 2
        assert await accepted(bench, 9, due_at=bench.clock.now() + 60_000) == 3


@pytest.mark.postgres
async def test_what_one_process_owes_is_not_accepted_by_another(opened, database):
    """Due jobs of one process take more than it holds; that is paid from what is free for all."""
    bounds = {"mail": 40, live_pool("mail"): 1000}
    async with opened(database, bounds=bounds) as first, opened(database, bounds=bounds) as second:
        assert await accepted(first, 30, due_at=first.clock.now() + 1000) == 30
        first.clock.advance(1)
        await first.promote_due()
        assert await accepted(second, 40) <= 10
        await second.store.maintain()
        await first.store.maintain()
        await second.settle(await second.claim(free=100))
        for bench in (first, second, first, second):
            bench.clock.advance(2)
            await bench.store.maintain()
        assert await accepted(first, 50) == 40


@pytest.mark.parametrize(("keys", "slots", "consumers"), [(3, 1, 2), (10, 3, 7), (20, 2, 5), (40, 8, 100)])
async def test_a_job_with_a_slot_starts_within_a_round_whatever_the_backlogs_are(
    bench: Bench, keys: int, slots: int, consumers: int
):
    """An attempt takes a round here. Every key has more than it can run, and half of all attempts fail."""
    for key in range(keys):
        await bench.offer(*[bench.row(key=f"busy{key}", slots=slots) for _ in range(slots * 6)])
    for _ in range(3):  # so that turns differ from ids
        await _round(bench, consumers)
    newcomer = await bench.add(key="new", slots=slots)
    rounds = 1
    while newcomer not in await _round(bench, consumers):
        rounds += 1
    assert rounds <= math.ceil((keys + 1) * slots / consumers) + 1


async def _round(bench: Bench, consumers: int) -> list[int]:
    leases = await bench.claim(free=consumers)
    await bench.settle(leases[::2], Retry(), resume_at=bench.clock.now())
    await bench.settle(leases[1::2])
    await bench.promote_due()
    return ids_of(leases)
