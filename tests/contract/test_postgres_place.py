"""PostgreSQL as people set it up: odd defaults don't matter, and what can't do is refused with what mends it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from itertools import cycle

import psycopg
import pytest

from tests.postgres_server import server
from ulak.cli.schema import migrate_store
from ulak.clock import SystemClock
from ulak.errors import Misconfigured, Unavailable
from ulak.settings import Settings
from ulak.stores.postgres import connections
from ulak.stores.postgres.check import check_sessions
from ulak.stores.postgres.connections import connect
from ulak.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

ROLE = "ulak_of_few_rights"


@pytest.fixture
def bare():
    """A database of the test's own, without a schema."""
    with server().bare_database() as found:
        yield found


def execute(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        for statement in statements:
            name = f'"{connection.info.dbname}"'
            connection.execute(statement.replace("DATABASE this", f"DATABASE {name}").encode())


@pytest.fixture
def poor(bare):
    """The address of the bare database for a role that may only connect."""
    execute(bare, f"DROP ROLE IF EXISTS {ROLE}", f"CREATE ROLE {ROLE} LOGIN")
    yield bare.replace("//postgres:@", f"//{ROLE}@")
    execute(bare, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


# What a role or a database may have as its default.

ODD = {
    "client_encoding": "LATIN1",
    "DateStyle": "German",
    "TimeZone": "Asia/Kolkata",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1s",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "1s",
    "idle_session_timeout": "1s",
    "transaction_timeout": "1s",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "row_security": "off",
    "plan_cache_mode": "force_custom_plan",
    "session_replication_role": "replica",
    "synchronous_commit": "off",
}


async def test_odd_defaults_of_a_database_change_nothing(opened, bare):
    execute(bare, *(f"ALTER DATABASE this SET {name} = '{value}'" for name, value in ODD.items()))
    async with opened(bare) as bench:
        first = await bench.add(key="ş€", payload={"name": "Ayşe"})
        second = await bench.add(key="ş€")
        leases = await bench.claim()
        assert [(lease.id, lease.key) for lease in leases] == [(first, "ş€")]
        await bench.settle(leases)
        assert [lease.id for lease in await bench.claim()] == [second]


@pytest.mark.parametrize(
    ("chosen", "ours"),
    [("off", "on"), ("local", "local"), ("remote_write", "remote_write"), ("remote_apply", "remote_apply")],
)
def test_only_a_commit_that_does_not_wait_for_the_disk_is_overruled(bare, chosen, ours):
    execute(bare, f"ALTER DATABASE this SET synchronous_commit = {chosen}")
    with connect(bare) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (ours,)


@pytest.mark.parametrize("name", [name for name in ODD if name.endswith("timeout")])
def test_no_timeout_of_others_ends_our_sessions(bare, name):
    execute(bare, f"ALTER DATABASE this SET {name} = '5s'")
    with connect(bare) as connection:
        assert connection.execute(f"SHOW {name}".encode()).fetchone() == ("0",)


async def test_a_server_that_does_not_sync_is_told_of(opened, database):
    async with opened(database) as bench:  # the tests' server does not
        (warning,) = await bench.store.warnings()
        assert "fsync = off" in warning


# Where Ulak can't work.


async def refused(address: str, error: type[Exception], match: str) -> None:
    """The same by a start and by `ulak db migrate`."""
    with pytest.raises(error, match=match):
        await PostgresStore(address, SystemClock(), lambda _: 1).open(Nobody())
    with pytest.raises(error, match=match):
        await asyncio.to_thread(migrate_store, Settings(store=address))


class Nobody:
    def committed(self, *_):
        pass

    def lost(self, *_):
        pass


async def test_a_search_path_that_leads_nowhere_is_refused(bare):
    await refused(f"{bare}&options=-csearch_path%3Dnowhere", Misconfigured, "search path of the role postgres")


async def test_a_schema_of_ones_own_is_used(opened, bare):
    execute(bare, "CREATE SCHEMA courier")
    async with opened(f"{bare}&options=-csearch_path%3Dcourier") as bench:
        assert await bench.add()
    with psycopg.connect(bare) as connection:
        assert connection.execute("SELECT count(*) FROM courier.job").fetchone() == (1,)


async def test_a_role_that_may_not_make_tables_is_told_which_right_it_lacks(poor):
    await refused(poor, Misconfigured, f'GRANT CREATE ON SCHEMA "public" TO "{ROLE}"')


async def test_a_role_that_may_not_use_the_schema_is_told_so(bare, poor):
    execute(bare, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
    await refused(poor, Misconfigured, "GRANT USAGE, CREATE ON SCHEMA")


async def test_a_role_that_lacks_rights_on_a_table_is_told_which(opened, bare, poor):
    async with opened(bare):
        pass  # makes the tables
    rights = "SELECT, INSERT, UPDATE, DELETE"
    execute(bare, f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {ROLE}", f"REVOKE UPDATE ON job FROM {ROLE}")
    await refused(poor, Misconfigured, f'GRANT {rights} ON job TO "{ROLE}"')
    execute(bare, f"GRANT UPDATE ON job TO {ROLE}")
    async with opened(poor) as bench:
        assert await bench.add()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_is_not_utf8_is_refused(encoding):
    home = server().address("postgres")
    execute(home, f"CREATE DATABASE odd ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    try:
        await refused(server().address("odd"), Misconfigured, f"{encoding}, Ulak needs UTF8")
    finally:
        execute(home, "DROP DATABASE odd WITH (FORCE)")


async def test_a_start_that_fails_late_leaves_nothing_behind(database, monkeypatch):
    async def fail(_):
        raise Unavailable("no")

    monkeypatch.setattr(PostgresStore, "warnings", fail)
    with pytest.raises(Unavailable):
        await PostgresStore(database, SystemClock(), lambda _: 1).open(Nobody())
    assert not [one.name for one in threading.enumerate() if one.name in {"ulak-work", "ulak-notifier", "ulak-relay"}]


# Servers that take no writes.


async def test_a_database_that_takes_no_writes_is_refused(bare):
    execute(bare, "ALTER DATABASE this SET default_transaction_read_only = on")
    await refused(bare, Unavailable, "takes no writes.*target_session_attrs=read-write")


async def test_work_goes_on_when_a_server_takes_no_writes_any_more_and_another_does(opened, bare):
    async with opened(bare) as bench:
        await bench.add()
        await bench.store.write(run_here("SET default_transaction_read_only = on"))
        await bench.add()
        assert await bench.tally() == {"accepted": 2}


async def test_work_waits_for_a_server_that_takes_writes(opened, bare, monkeypatch):
    waits = threading.Event()
    is_writable = connections.is_writable

    def watched(connection):
        found = is_writable(connection)
        if not found:
            waits.set()
        return found

    monkeypatch.setattr(connections, "is_writable", watched)
    async with opened(bare) as bench:
        execute(bare, "ALTER DATABASE this SET default_transaction_read_only = on")
        await bench.store.write(run_here("SET default_transaction_read_only = on"))
        adding = asyncio.create_task(bench.add())
        assert await asyncio.to_thread(waits.wait, 30)
        assert not adding.done()
        execute(bare, "ALTER DATABASE this RESET default_transaction_read_only")
        assert await adding
        assert await bench.tally() == {"accepted": 1}


def run_here(statement: str):
    """A unit that changes the writing session itself, as an operator or a pooler might."""
    return lambda tx: tx._cursor.execute(statement.encode()) and None


# Poolers.


class Lent:
    """A connection as a pooler by transactions shows it: each statement goes to the next backend."""

    def __init__(self, *backends: psycopg.Connection) -> None:
        self._backends = cycle(backends)

    def execute(self, *args, **kwargs):
        return next(self._backends).execute(*args, **kwargs)


def test_sessions_that_keep_their_backends_are_fine(database):
    with connect(database) as one, connect(database) as other:
        check_sessions(one, other)


@pytest.mark.parametrize("backends", [1, 2, 3])
def test_a_pooler_that_lends_backends_by_the_transaction_is_refused(database, backends):
    with contextlib.ExitStack() as stack:
        lent = Lent(*(stack.enter_context(connect(database)) for _ in range(backends)))
        with pytest.raises(Misconfigured, match="set its pool_mode to session"):
            check_sessions(lent, lent)


async def test_a_session_that_has_lost_our_statements_is_replaced(opened, database):
    async with opened(database) as bench:
        await bench.add()
        await bench.add()
        await bench.store.write(run_here("DEALLOCATE ALL"))
        await bench.add()
        assert await bench.tally() == {"accepted": 3}
