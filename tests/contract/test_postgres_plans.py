"""PostgreSQL: plans that were made while the queue was empty must still be right when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.contract.bench import Bench, sql
from ulak.spine.outcome import Retry
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.hold import hold_all, let_go
from ulak.spine.units.timers import promote_due
from ulak.stores.postgres.arrays import packers
from ulak.stores.postgres.connections import connect
from ulak.stores.postgres.session import _SETTINGS
from ulak.stores.postgres.tx import PostgresTx

pytestmark = pytest.mark.postgres

FILL = """
INSERT INTO job (id, kind, slots, prio, due_at, state, accepted_at, hold, payload, owner, epoch, turn)
SELECT n, CASE WHEN n < 50000 THEN 'other' ELSE 'mail' END, 1, 2, n,
       CASE WHEN n % 10 = 0 THEN 2 WHEN n % 10 = 1 THEN 1 ELSE 0 END, 0, 0, '\\x6e756c6c',
       CASE WHEN n < 90000 THEN 6 ELSE 7 END, 1, n
FROM generate_series(1, 100000) AS n
"""
store_sql = Queries("ulak.stores.postgres")
LITTLE = 20.0  # blocks read per job: a few index pages and the row, its old and its new place


def blocks_read(connection: psycopg.Connection[Any]) -> int:
    connection.execute("SELECT pg_stat_force_next_flush()")
    ((number,),) = connection.execute(
        "SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint"
        " FROM pg_statio_user_tables WHERE relname IN ('job', 'past')"
    ).fetchall()
    return int(number)


class Prepared:
    """A writing connection as the store makes it, whose statements were prepared on empty tables."""

    def __init__(self, address: str) -> None:
        self.connection = connect(address)
        self.connection.execute(_SETTINGS)
        self.cursor = self.connection.cursor(binary=True)

    def run(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        query = getattr(store_sql if name in ("finish_jobs", "find_levels") else sql, name)
        for each, pack in packers(query.postgres).items():
            parameters[each] = pack(parameters[each])
        self.cursor.execute(query.postgres.encode(), parameters, prepare=True)
        return self.cursor.fetchall() if self.cursor.description else []

    def cost(self, name: str, **parameters: Any) -> float:
        before = blocks_read(self.connection)
        rows = self.run(name, **parameters)
        return (blocks_read(self.connection) - before) / max(len(rows), 100)


@pytest.fixture
def prepared(database):
    found = Prepared(database)
    found.connection.execute("ALTER TABLE job SET (autovacuum_enabled = off)")  # it would plan anew by itself
    yield found
    found.connection.execute("ALTER TABLE job RESET (autovacuum_enabled)")
    found.connection.execute("TRUNCATE job, past")
    found.connection.close()


CLAIM: dict[str, Any] = {"owner": 1, "kind": "mail", "prio": 2, "n": 100, "now": 5, "floor": 0}
LEASED = list(range(10, 1010, 10))
STATEMENTS: dict[str, dict[str, Any]] = {
    "claim_jobs": CLAIM,
    "finish_jobs": {"id": LEASED, "epoch": [1] * 100, "done": [1] * 100, "now": 5},
    "read_leased": {"ids": LEASED},
    "find_due": {"until": 1_000_000, "n": 100, "floor": 0},
    "read_owned": {"owner": 7, "n": 100},
    "find_unique": {"kind": "mail", "keys": ["u"]},
    "find_occupied": {"keys": ["k"]},
    "find_behind": {"keys": ["k"]},
    "find_stranded": {"after": "", "n": 100},
    "next_due": {"floor": 0},
    "find_waiting_keys": {"ids": LEASED},
    "find_levels": {"kinds": ["mail", "other", "none"], "prios": [2, 2, 2], "floors": [0, 0, 0]},
    "withdraw_jobs": {"ids": list(range(51, 1051, 10))},
}


@pytest.mark.slow
@pytest.mark.parametrize("analyzed", ["never analyzed", "analyzed when empty", "analyzed when full"])
def test_plans_made_on_an_empty_queue_are_cheap_on_a_full_one(prepared: Prepared, analyzed: str):
    if analyzed == "analyzed when empty":
        prepared.connection.execute("VACUUM ANALYZE job, past")
    for name, parameters in STATEMENTS.items():
        for _ in range(6):  # more than the server takes to settle on a plan
            prepared.run(name, **parameters)
    prepared.connection.execute(FILL)
    if analyzed == "analyzed when full":
        prepared.connection.execute("ANALYZE job")
    costs = {name: prepared.cost(name, **parameters) for name, parameters in STATEMENTS.items()}
    assert {name: cost for name, cost in costs.items() if cost > LITTLE} == {}


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
