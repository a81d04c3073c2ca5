"""Jobs that a room takes back: out of the queue in two statements, and everything that counts them stays right."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.bench import Bench, ids_of
from ulak.clock import to_datetime
from ulak.spine.job import NewJob
from ulak.spine.query import Query
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import Full, enqueue_owed
from ulak.spine.units.live import find_live
from ulak.spine.units.withdraw import withdraw


async def test_timers_ready_jobs_and_those_behind_are_taken_back_and_claimed_ones_stay(bench: Bench):
    claimed = await bench.add(key="k")
    await bench.claim()
    later = bench.clock.now() + 60_000
    behind, ready, timer = await bench.add(key="k"), await bench.add(), await bench.add(due_at=later)
    taken = await bench.store.write(withdraw, [timer, ready, behind, claimed, 4711])
    assert taken == sorted([behind, ready, timer])
    assert await bench.live() == {"mail": 1}
    assert await bench.claim() == []
    assert await bench.record(timer, "past") is None
    tally = await bench.tally()
    assert (tally["accepted"], tally["cancelled"]) == (4, 3)


async def test_what_is_still_live_can_be_asked_for_many_at_once(bench: Bench):
    ready, taken = await bench.add(), await bench.add()
    await bench.store.write(withdraw, [taken])
    assert await bench.store.read(find_live, [ready, taken, 4711]) == {ready}
    assert await bench.store.read(find_live, []) == set()


async def test_a_slot_that_comes_free_is_handed_on(bench: Bench):
    first, second, third = [await bench.add(key="k") for _ in range(3)]
    assert await bench.store.write(withdraw, [first, third]) == [first, third]
    assert ids_of(await bench.claim()) == [second]


async def test_capacity_comes_back(opened, address):
    async with opened(address, bounds={"mail": 3}) as bench:
        assert await bench.offer(*[bench.row() for _ in range(3)]) != Full("mail", 3)
        found = ids_of(await bench.claim(free=1))
        assert isinstance(await bench.offer(bench.row()), Full)
        rows = [bench.row() for _ in range(2)]

        def replace(tx: Tx) -> None:
            waiting = [identifier for (identifier,) in tx.rows(ALL)]
            assert len(withdraw(tx, waiting)) == 2

        await bench.store.write(replace)
        assert not isinstance(await bench.offer(*rows), Full)
        assert isinstance(await bench.offer(bench.row()), Full)
        assert len(found) == 1


ALL = Query("all", "SELECT id FROM job", "SELECT id FROM job", ())


@pytest.mark.parametrize("number", [1, 10, 1000])
async def test_it_takes_two_statements_however_many_there_are(bench: Bench, number: int):
    later = bench.clock.now() + 60_000
    found = await bench.offer(*[bench.row(due_at=later) for _ in range(number)])
    assert not isinstance(found, Full)
    statements = 0

    def unit(tx: Tx) -> list[int]:
        nonlocal statements
        rows = tx.rows

        def counted(*args, **parameters):
            nonlocal statements
            statements += 1
            return rows(*args, **parameters)

        tx.rows = counted  # type: ignore[method-assign]
        return withdraw(tx, found)

    assert await bench.store.write(unit) == found
    assert statements == 2


async def test_a_job_of_the_same_transaction_can_be_taken_back(bench: Bench):
    def unit(tx: Tx) -> None:
        assert withdraw(tx, enqueue_owed(tx, [NewJob("mail")]))

    await bench.store.write(unit)
    assert await bench.live() == {}


async def test_owed_jobs_are_never_refused_and_keep_unique_keys_unique(opened, address):
    async with opened(address, bounds={"mail": 1}) as bench:
        await bench.add(unique_key="u")
        due_at = to_datetime(bench.clock.now()) + timedelta(minutes=1)
        jobs = [NewJob("mail", n, due_at=due_at) for n in range(3)]
        unique = [NewJob("mail", unique_key="u"), NewJob("mail", unique_key="v"), NewJob("mail", unique_key="v")]
        ids = await bench.store.write(enqueue_owed, jobs)
        assert len(set(ids)) == 3
        first, second, third = await bench.store.write(enqueue_owed, unique)
        assert first != second == third
        assert await bench.live() == {"mail": 5}
        assert isinstance(await bench.offer(bench.row()), Full)
        assert await bench.store.write(withdraw, ids) == ids
        assert isinstance(await bench.offer(bench.row()), Full)
