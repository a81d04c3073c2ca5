"""PostgreSQL: a claim and a look at the timers walk over nothing that an old snapshot keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.contract.bench import Bench, sql
from ulak.spine.outcome import Retry
from ulak.spine.store import Tx
from ulak.spine.units.hold import hold_all, let_go
from ulak.spine.units.timers import promote_due
from ulak.stores.postgres.tx import PostgresTx

pytestmark = pytest.mark.postgres

CLAIM: dict[str, Any] = {"owner": 1, "kind": "mail", "prio": 2, "n": 100, "now": 5, "floor": 0}


async def test_a_claim_does_not_walk_over_what_an_old_snapshot_keeps(opened, database):
    async with opened(database) as bench:
        with psycopg.connect(database) as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM job")
            await bench.offer(*[bench.row() for _ in range(4000)])
            for _ in range(30):
                await bench.settle(await bench.claim(free=100))
            with_floor = await _entries_walked(bench, "job_ready", _claim_above, None)
            without = await _entries_walked(bench, "job_ready", _claim_above, 0)
    assert with_floor < 200
    assert without > 3000


async def test_a_look_at_the_timers_does_not_walk_over_what_an_old_snapshot_keeps(opened, database):
    async with opened(database) as bench:
        with psycopg.connect(database) as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM job")
            await _fire_timers(bench, 3000)
            with_floor = await _entries_walked(bench, "job_due", promote_due)
            bench.store._floors.reset()
            without = await _entries_walked(bench, "job_due", promote_due)
    assert with_floor < 20
    assert without > 3000


async def _fire_timers(bench: Bench, number: int) -> None:
    soon, later = bench.clock.now() + 1000, bench.clock.now() + 60_000
    await bench.offer(*[bench.row(due_at=soon) for _ in range(number)], bench.row(due_at=later))
    bench.clock.advance(1)
    while await bench.promote_due() != later:
        pass
    assert len(await bench.claim(free=number + 1)) == number


async def test_a_timer_below_the_floor_lowers_it_whoever_commits_it(opened, database):
    """Each of them is earlier than the one before, which the floor is at."""
    async with opened(database) as bench, opened(database) as other:
        times = [bench.clock.now() + seconds * 1000 for seconds in (50, 40, 30, 20)]
        await bench.add(due_at=times[0])
        assert await bench.promote_due() == times[0]
        await bench.add(due_at=times[1])
        assert await bench.promote_due() == times[1]
        await other.add(due_at=times[2])
        await bench.ears.until(lambda: bench.ears.due_at == times[2])
        assert await bench.promote_due() == times[2]
        await other.add()
        await bench.settle(await bench.claim(), Retry(after_seconds=20), resume_at=times[3])
        assert await bench.promote_due() == times[3]
        bench.clock.advance(60)
        assert await bench.promote_due() is None
        assert len(await bench.claim()) == 4


async def test_a_timer_of_which_no_word_has_come_waits_no_longer_than_for_the_next_reset(opened, database):
    async with opened(database) as bench:
        assert await bench.promote_due() is None
        soon, later = bench.clock.now() + 1000, bench.clock.now() + 60_000
        await bench.add(due_at=later)
        with psycopg.connect(database, autocommit=True) as silent:
            silent.execute("UPDATE job SET due_at = %s", (soon,))
        assert await bench.promote_due() is None
        bench.clock.advance(1)
        await bench.store.maintain()
        assert await bench.promote_due() is None
        assert len(await bench.claim()) == 1


async def test_held_work_that_is_let_go_is_found_at_its_true_time_however_long_past(opened, database):
    async with opened(database) as bench:
        identifier = await bench.add()
        await bench.store.write(hold_all, bench.store.owner, 3)
        bench.clock.advance(60)
        assert (await bench.promote_due() or 0) > bench.clock.now()
        await bench.store.write(let_go)
        assert await bench.promote_due() is None
        assert [lease.id for lease in await bench.claim()] == [identifier]


async def _entries_walked(bench: Bench, index: str, unit: Callable[..., Any], *args: Any) -> int:
    """How many entries of an index a unit goes over."""
    before = await _entries_read(bench, index)
    await bench.store.write(unit, *args)
    return await _entries_read(bench, index) - before


def _claim_above(tx: Tx, floor: int | None) -> None:
    """With None, from the floor that the store keeps."""
    assert isinstance(tx, PostgresTx)
    kept = tx._floors.begin(("mail", 2))
    rows = tx.rows(sql.claim_jobs, **(CLAIM | {"floor": kept if floor is None else floor}))
    assert len(rows) == 100


async def _entries_read(bench: Bench, index: str) -> int:
    def ask(tx: Tx, statement: str) -> Any:
        assert isinstance(tx, PostgresTx)
        return tx._cursor.execute(statement.encode()).fetchall()[0][0]

    await bench.store.write(ask, "SELECT pg_stat_force_next_flush()")
    return int(
        await bench.store.write(ask, f"SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = '{index}'")
    )
