"""PostgreSQL: a job that joins the caller's own transaction, on each driver, exists when that transaction commits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tests.contract.bench import Bench, ids_of
from ulak.errors import Conflict, Misconfigured, Refused
from ulak.spine.units.enqueue import Full
from ulak.spine.units.slots import PROMOTE_STRANDED
from ulak.stores.postgres import join
from ulak.stores.postgres.tx import PostgresTx

pytestmark = pytest.mark.postgres


@contextlib.asynccontextmanager
async def psycopg_sync(address: str):
    with psycopg.connect(address, row_factory=dict_row) as connection:
        yield connection, connection.commit, connection.rollback


@contextlib.asynccontextmanager
async def psycopg_async(address: str):
    async with await psycopg.AsyncConnection.connect(address, row_factory=dict_row) as connection:
        yield connection, connection.commit, connection.rollback


@contextlib.asynccontextmanager
async def sqlalchemy_connection(address: str):
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback


@contextlib.asynccontextmanager
async def sqlalchemy_session(address: str):
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with Session(engine) as session:
        yield session, session.commit, session.rollback


def _asynchronous(driver: str):
    @contextlib.asynccontextmanager
    async def connection_on(address: str):
        engine = create_async_engine(address.replace("postgresql:", f"postgresql+{driver}:"), poolclass=NullPool)
        async with engine.connect() as connection:
            yield connection, connection.commit, connection.rollback

    return connection_on


@contextlib.asynccontextmanager
async def sqlalchemy_async_session(address: str):
    engine = create_async_engine(address.replace("postgresql:", "postgresql+asyncpg:"), poolclass=NullPool)
    async with AsyncSession(engine) as session:
        yield session, session.commit, session.rollback


WAYS = {
    "psycopg": psycopg_sync,
    "psycopg async": psycopg_async,
    "sqlalchemy": sqlalchemy_connection,
    "sqlalchemy session": sqlalchemy_session,
    "sqlalchemy async, psycopg": _asynchronous("psycopg"),
    "sqlalchemy async, asyncpg": _asynchronous("asyncpg"),
    "sqlalchemy async session": sqlalchemy_async_session,
}


async def _maybe_await(found: Any) -> None:
    if found is not None:
        await found


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
async def store_bench(opened, database):
    async with opened(database, bounds={"few": 2}) as found:
        yield found


async def test_a_job_exists_when_the_callers_transaction_commits(store_bench: Bench, database, way):
    bench = store_bench
    rows = [bench.row(payload={"n": 1}, prio=1), bench.row(due_at=bench.clock.now() + 1000)]
    async with way(database) as (connection, commit, _):
        ids = await bench.store.enqueue_in(connection, rows)
        assert ids == [row.id for row in rows]
        assert await bench.claim() == []
        await _maybe_await(commit())
    await bench.ears.until(lambda: ("mail", 1) in bench.ears.ready)
    assert ids_of(await bench.claim()) == [rows[0].id]
    assert await bench.tally() == {"accepted": 2}
    assert [one.name for one in await bench.events(3)] == ["accepted", "accepted", "started"]


async def test_a_job_goes_when_the_callers_transaction_rolls_back(store_bench: Bench, database, way):
    bench = store_bench
    async with way(database) as (connection, _, rollback):
        await bench.store.enqueue_in(connection, [bench.row()])
        await _maybe_await(rollback())
    assert await bench.live() == {}
    assert await bench.tally() == {}


async def test_keyed_jobs_stand_behind_until_they_are_found(store_bench: Bench, database, way):
    bench = store_bench
    first, second = bench.row(key="k"), bench.row(key="k")
    async with way(database) as (connection, commit, _):
        await bench.store.enqueue_in(connection, [first, second])
        await _maybe_await(commit())
    await bench.ears.until(lambda: bench.ears.behind)
    await bench.store.submit(PROMOTE_STRANDED, "")
    (lease,) = await bench.claim()
    assert lease.id == first.id
    await bench.settle([lease])
    assert ids_of(await bench.claim()) == [second.id]


async def test_keys_beyond_the_first_page_are_found_as_well(store_bench: Bench, database):
    bench = store_bench
    async with psycopg_async(database) as (connection, commit, _):
        await bench.store.enqueue_in(connection, [bench.row(key=f"k{number:03}") for number in range(150)])
        await commit()
    await bench.ears.until(lambda: bench.ears.behind)
    after: str | None = ""
    while after is not None:
        after = await bench.store.submit(PROMOTE_STRANDED, after)
    assert len(await bench.claim(free=200)) == 150


async def test_jobs_of_many_kinds_in_one_transaction_are_all_announced(store_bench: Bench, database, way):
    """A NOTIFY that is too long would break the caller's transaction."""
    bench = store_bench
    rows = [bench.row(f"{number:03}.{'é' * 96}") for number in range(150)]
    async with way(database) as (connection, commit, _):
        await bench.store.enqueue_in(connection, rows)
        await _maybe_await(commit())
    await bench.ears.until(lambda: {(row.kind, 2) for row in rows} <= bench.ears.ready)


async def test_a_taken_unique_key_answers_its_holder_and_takes_no_capacity(store_bench: Bench, database, way):
    bench = store_bench
    holder = await bench.add("few", unique_key="u")
    async with way(database) as (connection, commit, _):
        assert await bench.store.enqueue_in(connection, [bench.row("few", unique_key="u")]) == [holder]
        await _maybe_await(commit())
    assert not isinstance(await bench.offer(bench.row("few")), Full)


async def test_a_caller_who_commits_in_spite_of_a_conflict_has_enqueued_nothing(
    store_bench: Bench, database, way, monkeypatch
):
    """The holder of a unique key ends between the insert and the look for it; then nobody is found there."""
    bench = store_bench
    await bench.add("few", unique_key="u")
    find = join.spine_sql.find_unique
    monkeypatch.setattr(join.spine_sql, "find_unique", replace(find, postgres=f"{find.postgres} AND false"))
    async with way(database) as (connection, commit, _):
        with pytest.raises(Conflict, match="the unique key 'u' of few"):
            await bench.store.enqueue_in(connection, [bench.row("mail"), bench.row("few", unique_key="u")])
        await _maybe_await(commit())
    assert await bench.live() == {"few": 1}
    assert not isinstance(await bench.offer(bench.row("few")), Full)


async def test_the_bound_holds_in_a_callers_transaction_too(store_bench: Bench, database):
    bench = store_bench
    await bench.offer(bench.row("few"), bench.row("few"))
    with psycopg.connect(database) as connection, pytest.raises(Refused):
        await bench.store.enqueue_in(connection, [bench.row("few")])


async def test_capacity_of_a_rolled_back_caller_comes_back(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database) as connection:
        await bench.store.enqueue_in(connection, [bench.row("few"), bench.row("few")])
        await _tend(bench, times=3)
        assert isinstance(await bench.offer(bench.row("few")), Full)
        connection.rollback()
    await _tend(bench, times=2)
    assert not isinstance(await bench.offer(bench.row("few"), bench.row("few")), Full)


async def test_capacity_of_a_committed_caller_comes_back_with_its_jobs_only(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database) as connection:
        await bench.store.enqueue_in(connection, [bench.row("few"), bench.row("few")])
    await _tend(bench, times=3)
    assert isinstance(await bench.offer(bench.row("few")), Full)
    await bench.store.recount()
    assert isinstance(await bench.offer(bench.row("few")), Full)
    await bench.settle(await bench.claim("few"))
    assert not isinstance(await bench.offer(bench.row("few"), bench.row("few")), Full)


@pytest.mark.parametrize("way", [psycopg_sync, sqlalchemy_connection], ids=["psycopg", "sqlalchemy"])
async def test_one_who_is_cancelled_while_a_thread_enqueues_waits_for_it_and_keeps_its_capacity(
    store_bench: Bench, database, way, monkeypatch
):
    bench = store_bench
    under_way, go_on = threading.Event(), threading.Event()
    words = join.words

    def held_up(*args: Any, **options: Any) -> list[str]:
        under_way.set()
        go_on.wait(10)
        return words(*args, **options)

    monkeypatch.setattr(join, "words", held_up)
    async with way(database) as (connection, commit, _):
        enqueuing = asyncio.create_task(bench.store.enqueue_in(connection, [bench.row("few"), bench.row("few")]))
        await asyncio.to_thread(under_way.wait, 10)
        enqueuing.cancel()
        await asyncio.wait([enqueuing], timeout=0.05)
        still_at_it = not enqueuing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await enqueuing
        assert isinstance(await bench.offer(bench.row("few")), Full)
        commit()
    assert still_at_it
    await _tend(bench, times=3)
    assert isinstance(await bench.offer(bench.row("few")), Full)


async def test_one_who_is_cancelled_before_the_capacity_is_lent_gives_it_back(
    store_bench: Bench, database, monkeypatch
):
    bench = store_bench
    under_way, go_on = threading.Event(), threading.Event()
    lend = PostgresTx.lend

    def held_up(tx: PostgresTx, wanted: Counter[str]) -> str | None:
        under_way.set()
        go_on.wait(10)
        return lend(tx, wanted)

    monkeypatch.setattr(PostgresTx, "lend", held_up)
    with psycopg.connect(database) as connection:
        enqueuing = asyncio.create_task(bench.store.enqueue_in(connection, [bench.row("few"), bench.row("few")]))
        await asyncio.to_thread(under_way.wait, 10)
        enqueuing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await enqueuing
        go_on.set()
        await bench.store.write(lambda tx: None)  # in the commit after that
        assert not isinstance(await bench.offer(bench.row("few"), bench.row("few")), Full)


async def test_a_recount_beside_an_open_caller_gives_nothing_away(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database) as connection:
        await bench.store.enqueue_in(connection, [bench.row("few"), bench.row("few")])
        await bench.store.recount()
        await _tend(bench, times=1)
        assert isinstance(await bench.offer(bench.row("few")), Full)


async def _tend(bench: Bench, times: int) -> None:
    for _ in range(times):
        bench.clock.advance(6)
        await bench.store.maintain()


async def test_an_autocommit_connection_without_a_transaction_is_refused(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database, autocommit=True) as connection:
        with pytest.raises(Misconfigured, match="autocommit"):
            await bench.store.enqueue_in(connection, [bench.row()])
        with connection.transaction():
            await bench.store.enqueue_in(connection, [bench.row()])
    assert await bench.live() == {"mail": 1}
    engine = create_engine(
        database.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection, pytest.raises(Misconfigured, match="AUTOCOMMIT"):
        await bench.store.enqueue_in(connection, [bench.row()])


async def test_a_failed_transaction_is_refused(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(Conflict, match="failed already"):
            await bench.store.enqueue_in(connection, [bench.row()])
        connection.rollback()
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.connect() as connection:
        with pytest.raises(Exception, match="division"):
            connection.execute(text("SELECT 1 / 0"))
        with pytest.raises(Conflict, match="failed already"):
            await bench.store.enqueue_in(connection, [bench.row()])


async def test_a_connection_to_somewhere_else_is_refused(store_bench: Bench, database):
    bench = store_bench
    with psycopg.connect(database) as connection:
        connection.execute("SET search_path = pg_temp")
        with pytest.raises(Misconfigured, match="another database"):
            await bench.store.enqueue_in(connection, [bench.row()])
    with pytest.raises(Misconfigured, match="can't carry"):
        await bench.store.enqueue_in(object(), [bench.row()])


async def test_backups_are_left_to_postgresqls_own_tool(store_bench: Bench):
    with pytest.raises(Misconfigured, match="pg_dump"):
        await store_bench.store.backup("copy.dump")
