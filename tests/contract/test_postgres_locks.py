"""PostgreSQL: what another session holds costs only those who need it, and a batch never works without its locks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.contract.bench import LEVELS, ids_of
from ulak.errors import Unavailable
from ulak.spine.units.claim import CLAIM_SUSPECTS, ClaimVerbs, Demand, SuspectDemand, Want
from ulak.spine.units.enqueue import enqueue_rows
from ulak.spine.units.timers import HELD_MILLIS
from ulak.stores.postgres.tx import Contended

pytestmark = pytest.mark.postgres


@contextlib.contextmanager
def held_by_a_stranger(address: str, *keys: str) -> Iterator[None]:
    with psycopg.connect(address, autocommit=True) as stranger:
        for key in keys:
            stranger.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
        yield


def _enqueue_and_lock(bench, key: str):
    """A unit that holds something already when it comes to its key, so that it may not wait for it."""
    row = bench.row()

    def unit(tx):
        enqueue_rows(tx, [row])
        tx.lock_keys([key])
        return row.id

    return unit


async def test_a_key_that_a_stranger_holds_fails_only_who_needs_it(opened, database):
    async with opened(database) as bench:
        with held_by_a_stranger(database, "held"):
            verdicts = await asyncio.gather(
                bench.add(),
                bench.store.write(_enqueue_and_lock(bench, "held")),
                bench.store.write(_enqueue_and_lock(bench, "free")),
                return_exceptions=True,
            )
            assert isinstance(verdicts[1], Unavailable)
            assert "another transaction holds" in str(verdicts[1])
            assert isinstance(verdicts[0], int)
            assert isinstance(verdicts[2], int)
            assert await bench.live() == {"mail": 2}


async def test_batches_after_a_contended_one_do_not_wait_for_its_keys(opened, database):
    async with opened(database) as bench:
        with held_by_a_stranger(database, "held"):
            with pytest.raises(Unavailable):
                await bench.store.write(_enqueue_and_lock(bench, "held"))
            assert await bench.store.write(lambda tx: set(tx._keys)) == set()
            await bench.add()
        await bench.store.write(_enqueue_and_lock(bench, "held"))
        assert await bench.live() == {"mail": 2}


async def test_timers_that_a_stranger_holds_are_looked_at_again_in_a_while_and_not_at_once(opened, database):
    async with opened(database) as bench:
        identifier = await bench.add(due_at=bench.clock.now() + 1000)
        bench.clock.advance(2)
        with psycopg.connect(database) as stranger:
            stranger.execute("SELECT 1 FROM job WHERE id = %s FOR UPDATE", (identifier,))
            assert await bench.promote_due() == bench.clock.now() + HELD_MILLIS
            assert await bench.look_ahead() == bench.clock.now() + HELD_MILLIS
        assert await bench.promote_due() is None
        assert ids_of(await bench.claim()) == [identifier]


async def test_contention_that_does_not_end_is_its_callers_trouble_and_not_the_process_end(opened, database):
    async with opened(database) as bench:

        def unit(tx):
            raise Contended({"free"})

        with pytest.raises(Unavailable, match="another transaction holds"):
            await bench.store.write(unit)
        await bench.add()
        assert bench.ears.failure is None


@pytest.mark.parametrize(
    "error", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure], ids=["deadlock", "serialization"]
)
async def test_a_deadlock_that_comes_again_and_again_does_not_end_the_process_either(opened, database, error):
    async with opened(database) as bench:
        state = error.sqlstate

        def unit(tx):
            tx.begin()
            tx._cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'met' USING ERRCODE = '{state}'; END $$".encode())

        verdicts = await asyncio.gather(bench.add(), bench.store.write(unit), return_exceptions=True)
        assert isinstance(verdicts[0], int)
        assert isinstance(verdicts[1], Unavailable)
        assert bench.ears.failure is None


async def test_a_unit_after_one_that_failed_on_the_same_key_locks_it_again(opened, database):
    """The failed one's lock went with its savepoint."""
    async with opened(database) as bench:

        def fail(tx):
            tx.lock_keys(["k"])
            raise ValueError("on purpose")

        def work(tx):
            tx.lock_keys(["k"])
            return _is_free(database, "k")

        verdicts = await asyncio.gather(
            bench.store.write(fail), bench.store.write(work), bench.store.write(work), return_exceptions=True
        )
        assert isinstance(verdicts[0], ValueError)
        assert verdicts[1:] == [False, False]


async def test_a_unit_after_one_that_failed_may_wait_for_its_key(opened, database):
    """What the failed one held is free again, so nobody can be waiting for this transaction."""
    async with opened(database) as bench:

        def fail(tx):
            enqueue_rows(tx, [bench.row()])
            raise ValueError("on purpose")

        def look(tx):
            return tx._holds, set(tx._keys)

        verdicts = await asyncio.gather(bench.store.write(fail), bench.store.write(look), return_exceptions=True)
        assert verdicts[1] == (False, set())


async def test_a_claim_that_was_undone_leaves_its_jobs_to_be_found(opened, database):
    async with opened(database) as bench:
        identifier = await bench.add()

        def fail(tx):
            assert tx.claim(bench.store.owner, "mail", 2, 10)
            raise ValueError("on purpose")

        verdicts = await asyncio.gather(
            bench.store.write(fail), bench.store.write(lambda tx: None), return_exceptions=True
        )
        assert isinstance(verdicts[0], ValueError)
        assert [lease.id for lease in await bench.claim()] == [identifier]


def _is_free(address: str, key: str) -> bool:
    with psycopg.connect(address, autocommit=True) as stranger:
        row = stranger.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (key,)).fetchone()
        return row == (True,)


async def _first_of(address: str, column: str, ask: Callable[[], Awaitable[Any]]) -> str:
    """Which of the rows a and b is locked first, by one who needs both: a stranger has a, and looks who has b."""
    table, name = column.split(".")
    with psycopg.connect(address) as stranger:
        stranger.execute(f"SELECT 1 FROM {table} WHERE {name} = 'a' FOR UPDATE".encode())
        under_way = asyncio.ensure_future(ask())
        async with asyncio.timeout(20):
            while stranger.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
                await asyncio.sleep(0.001)
        is_free = stranger.execute(f"SELECT 1 FROM {table} WHERE {name} = 'b' FOR UPDATE SKIP LOCKED".encode())
        first = "b" if is_free.fetchone() is None else "a"
    await under_way
    return first


async def test_budgets_are_locked_in_one_order_whosever_turn_it_is(opened, database):
    async with opened(database) as bench:
        for kind in ("a", "b"):
            await bench.add(kind)
            await bench.claim(kind, rate=10.0)
            await bench.add(kind)  # a kind with nothing to do has no budget looked up
        wants = tuple(Want(kind, 1, LEVELS, 10.0) for kind in ("b", "a"))
        demand = Demand(bench.store.owner, wants, 2, {"async": 2})
        assert await _first_of(database, "budget.kind", lambda: bench.store.submit(ClaimVerbs().verb, demand)) == "a"


async def test_budgets_of_suspects_are_locked_in_the_same_order(opened, database):
    async with opened(database) as bench:
        for kind in ("a", "b"):
            await bench.add(kind)
            await bench.claim(kind, rate=10.0)
        demand = SuspectDemand(bench.store.owner, ("b", "a"), 2, alone=False, rates={"a": 10.0, "b": 10.0})
        assert await _first_of(database, "budget.kind", lambda: bench.store.submit(CLAIM_SUSPECTS, demand)) == "a"


async def test_capacity_in_several_pools_is_taken_in_one_order(opened, database):
    async with opened(database, bounds={"a": 8, "b": 8}) as bench:
        await bench.offer(bench.row("a"), bench.row("b"))  # of blocks of one, nothing is left in memory
        assert await _first_of(database, "capacity.pool", lambda: bench.offer(bench.row("b"), bench.row("a"))) == "a"


async def test_capacity_for_a_callers_transaction_is_taken_in_the_same_order(opened, database):
    async with opened(database, bounds={"a": 8, "b": 8}) as bench:
        await bench.offer(bench.row("a"), bench.row("b"))
        with psycopg.connect(database) as caller:
            rows = [bench.row("b"), bench.row("a")]
            assert await _first_of(database, "capacity.pool", lambda: bench.store.enqueue_in(caller, rows)) == "a"
