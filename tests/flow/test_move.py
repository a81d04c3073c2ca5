"""A store outgrows its file: everything goes to PostgreSQL, all or nothing, and is finished there, once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.flow.conftest import build
from tests.flow.mixed import HOOK, Runs, fill
from tests.flow.stores import events_with
from tests.postgres_server import fresh_database, server
from ulak import NewJob
from ulak.cli.move import move_store, show_plan
from ulak.errors import Conflict, Misconfigured, Unavailable
from ulak.ids import made_at
from ulak.rooms import LINES
from ulak.settings import Settings
from ulak.spine.units.sample import take_sample
from ulak.stores import move as parts
from ulak.stores.migrate import ONLY_SPINE, migrate_postgres, migrate_sqlite
from ulak.stores.seal import read_seal
from ulak.testing import advance, drain

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]


@pytest.fixture
def target():
    with fresh_database() as found:
        yield found


@pytest.fixture(autouse=True)
def _log_as_it_is(monkeypatch):
    """The command sets the log of its process up, and here that is the tests' own."""
    monkeypatch.setattr("ulak.cli.logs.set_up_quietly", lambda log: None)


def opened(address):
    return contextlib.closing(sqlite3.connect(address.removeprefix("sqlite:///"), isolation_level=None))


async def move(source, target):
    await asyncio.to_thread(move_store, Settings(store=source), target)


def look(target, statement):
    with psycopg.connect(target) as connection:
        return connection.execute(statement).fetchall()


def rows_in(target):
    return {
        table: number for table in parts.work_of(LINES) for (number,) in look(target, f"SELECT count(*) FROM {table}")
    }


async def finish(address, clock):
    """An Ulak that does what is left; answers what ran."""
    runs = Runs()
    async with runs.on(build(address, clock)) as ulak:
        await drain(ulak)
        for _ in range(4):
            await advance(ulak, 60)
        await advance(ulak, 3600)
    return runs


def counted(runs):
    """How often each ran; cron fires by its own times, and a rate may have let its job go before the move."""
    return Counter(payload for payload in runs.order if payload not in {"cron", "rated"})


WAITED = Counter(
    [f"line {n}" for n in range(5)] + [f"wide {n}" for n in range(4)] + [f"plain {n}" for n in range(50)]
    + [f"hook {n}" for n in range(6)] + ["shaky", "leased", "later", "unique"]
)  # fmt: skip


async def test_moved_work_is_finished_once_and_in_the_order_of_its_keys(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    runs = await finish(target, clock)
    assert counted(runs) == WAITED
    assert [payload for payload in runs.order if payload.startswith("line")] == [f"line {n}" for n in range(5)]
    assert runs.uncertain == ["leased"]


async def test_what_a_killed_server_was_running_comes_as_uncertain_or_waits_for_a_person(sqlite_address, target, clock):
    filled = await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    async with build(target, clock, work=False) as ulak:
        leased = await ulak.jobs.get(filled.ids["leased"])
        held = await ulak.jobs.get(filled.ids["held"])
    assert (leased.status, leased.crashes) == ("suspect", 1)
    assert [entry.word for entry in leased.timeline] == ["accepted", "started", "uncertain"]
    assert held.status == "dead"
    assert "may have had its effect" in held.detail


async def test_timelines_and_results_are_the_same_on_both_sides(sqlite_address, target, clock):
    filled = await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    unseal(sqlite_address)
    records = []
    for address in (sqlite_address, target):
        async with build(address, clock, work=False) as ulak:
            records.append({name: await ulak.jobs.get(job) for name, job in filled.ids.items()})
    assert records[0] == records[1]
    assert records[1]["done"].detail == "did done"
    assert "retried" in [entry.word for entry in records[1]["shaky"].timeline]


def unseal(address):
    """As no command does: to compare the two sides."""
    with opened(address) as connection:
        parts.lift_seal(connection)


async def test_every_row_is_the_same_on_both_sides(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    with opened(sqlite_address) as connection:
        connection.execute("INSERT INTO meta VALUES ('store_id', 'the same store')")
        connection.execute("INSERT INTO event_follower VALUES ('mirror', 3, 7)")
        connection.execute("INSERT INTO kind_control VALUES ('done', 1, NULL, 7)")
        connection.execute("INSERT INTO buses_lease VALUES ('relay', 1, 7)")
        connection.execute("INSERT INTO audit VALUES (1000, 7, 'ada', 'kinds.pause', 'done', '{}', 'abc')")
        # As a value may be that came by another way: its type is its own, not the column's.
        connection.execute(r"UPDATE past SET detail = CAST(detail AS BLOB), payload = '{\"a\\b\": 1}'")
        fill_the_rest(connection)
    await move(sqlite_address, target)
    for table in parts.moved(LINES):
        with opened(sqlite_address) as connection:
            types = {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}
            cast = ", ".join(f"CAST({name} AS {kind})" for name, kind in types.items())
            here = set(connection.execute(f"SELECT {cast} FROM {table}"))
        there = set(look(target, f"SELECT {', '.join(types)} FROM {table}"))
        if table == "meta":
            here, there = ({row for row in rows if row[0] not in {"token", "move"}} for rows in (here, there))
        assert here == there, table
        assert here, f"the test has no {table}"


def fill_the_rest(connection):
    """A row in each table that has none. All numbers are the same, so that what refers to another row finds it."""
    for table in parts.moved(LINES):
        if connection.execute(f"SELECT 1 FROM {table}").fetchone() is None:
            types = [row[2] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = [{"TEXT": "seven", "BLOB": b"7", "REAL": 7.5}.get(kind, 1) for kind in types]
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


async def test_a_follower_of_the_events_reads_on_from_its_cursor(sqlite_address, target, clock):
    filled = await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    async with build(target, clock, work=False) as ulak:
        await ulak.store.write(lambda tx: tx.emit("test.after_the_move", 0, ""))
        events = await events_with(ulak, "test.after_the_move")
        after = await ulak.jobs.events(after=filled.last_seq)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert after == events[filled.last_seq :]
    # What the rescue before the move has told, and then what is new.
    assert [event.name for event in after] == ["uncertain", "uncertain", "dead", "test.after_the_move"]


async def test_new_ids_are_above_the_moved_ones_even_if_the_clocks_differ(sqlite_address, target, clock):
    clock.step(3600)
    filled = await fill(sqlite_address, clock)
    clock.step(-3600)
    await move(sqlite_address, target)
    async with build(target, clock, work=False) as one, build(target, clock, work=False) as two:
        new = [await ulak.enqueue("mail", "new") for ulak in (one, two) for _ in range(3)]
    assert min(map(made_at, new)) > made_at(max(filled.ids.values()))
    assert len(set(new)) == 6


async def test_unique_keys_idempotency_keys_inboxes_and_endpoints_hold_on(sqlite_address, target, clock):
    filled = await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    async with Runs().on(build(target, clock)) as ulak:
        assert await ulak.enqueue("mail", "again", unique_key="one") == filled.ids["unique"]
        again = await ulak.notify.send("IN_APP", "ayşe", "İkinci", idempotency_key="second")
        assert again == filled.notification
        await drain(ulak)
        assert [item.body for item in await ulak.notify.inbox("ayşe")] == ["İkinci", "Merhaba"]
        assert await ulak.notify.endpoints.secrets(HOOK)
    assert look(target, "SELECT name, scopes FROM access_key") == [("ops", "admin")]


async def test_an_open_breaker_and_a_cron_entry_go_on_where_they_were(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    with opened(sqlite_address) as connection:
        cron = connection.execute("SELECT * FROM cron").fetchall()
        breakers = connection.execute("SELECT * FROM breaker").fetchall()
    # A start of the target before the move has opened the entry there, at a later time.
    clock.advance(5)
    async with Runs().on(build(target, clock)) as ulak:
        await drain(ulak)
    await move(sqlite_address, target)
    assert look(target, "SELECT * FROM cron") == cron
    assert look(target, "SELECT * FROM breaker") == breakers
    assert [row[:2] for row in breakers] == [("shop", "open")]


async def test_every_accepted_job_is_accounted_for_after_the_move_and_at_the_end(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    for ending in (None, finish):
        if ending is not None:
            await ending(target, clock)
        async with build(target, clock, work=False) as ulak:
            sample = await ulak.store.read(take_sample)
        assert {kind: sample.difference(kind) for kind in sample.kinds()} == dict.fromkeys(sample.kinds(), 0)


async def test_moved_jobs_count_against_their_bound(sqlite_address, target, clock):
    async with build(sqlite_address, clock, work=False) as ulak:
        await ulak.enqueue_many([NewJob(kind, n, delay_seconds=60) for kind in ("a", "b") for n in range(3)])
    await move(sqlite_address, target)
    async with build(target, clock, spine={"capacity": 5}) as ulak:
        taken = {kind: [await ulak.offer(kind, delay_seconds=60) for _ in range(4)] for kind in ("a", "b")}
    assert {kind: sum(job is not None for job in jobs) for kind, jobs in taken.items()} == {"a": 2, "b": 2}


async def test_moved_jobs_count_against_their_bound_when_several_start_together(sqlite_address, target, clock):
    async with build(sqlite_address, clock, work=False) as ulak:
        await ulak.enqueue_many([NewJob("mail", n) for n in range(3)])
    await move(sqlite_address, target)
    with psycopg.connect(target) as connection:  # so that nobody is the first, who counts at its start
        connection.execute("INSERT INTO owner VALUES (1, 1000, 'another', 0, %s)", (clock.now() + 3_600_000,))
    async with build(target, clock, spine={"capacity": 10}) as ulak:
        clock.advance(10)
        await ulak.store.maintain()
        await recounted(target)
        taken = [await ulak.offer("mail") for _ in range(12)]
    assert sum(job is not None for job in taken) == 7


async def recounted(target):
    """Until somebody has counted, which removes what the move has left to ask for it."""
    async with await psycopg.AsyncConnection.connect(target, autocommit=True) as connection:
        while await (await connection.execute("SELECT 1 FROM credit WHERE owner = 0")).fetchone() is not None:
            await asyncio.sleep(0.001)


# Refusals


async def test_a_moved_store_can_not_be_worked_on_nor_moved_again(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    await move(sqlite_address, target)
    with pytest.raises(Misconfigured, match="was moved to PostgreSQL"):
        await build(sqlite_address, clock).open()
    with fresh_database() as other:
        for again in (target, other):
            with pytest.raises(Conflict, match="was moved already"):
                await move(sqlite_address, again)
    with opened(sqlite_address) as connection, pytest.raises(Misconfigured):
        migrate_sqlite(connection, LINES, 0)


async def test_a_file_in_use_is_not_moved(sqlite_address, target, clock):
    async with build(sqlite_address, clock, work=False) as ulak:
        await ulak.enqueue("mail", 1)
        with pytest.raises(Conflict, match="stop that server"):
            await move(sqlite_address, target)
    assert not any(rows_in(target).values())


async def test_a_target_with_work_is_refused_and_what_is_there_is_named(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    async with build(target, clock, work=False) as ulak:
        await ulak.enqueue("mail", 1)
        await events_with(ulak, "accepted")
    with pytest.raises(Conflict, match=r"job 1.*event_block 1"):
        await move(sqlite_address, target)
    with pytest.raises(Conflict, match=r"job 1"):
        show_plan(sqlite_address, target)
    assert rows_in(target)["job"] == 1
    await build_and_close(sqlite_address, clock)


async def build_and_close(address, clock):
    async with build(address, clock, work=False):
        pass


async def test_a_target_on_which_somebody_works_is_refused(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    async with build(target, None, work=False):
        with pytest.raises(Conflict, match="works on the target; stop it"):
            await move(sqlite_address, target)
    await move(sqlite_address, target)


async def test_a_database_without_a_schema_gets_one_and_one_with_an_older_is_refused(sqlite_address, clock):
    await fill(sqlite_address, clock)
    with server().bare_database() as bare:
        with psycopg.connect(bare, autocommit=True) as connection:
            migrate_postgres(connection, ONLY_SPINE, 0)
        with pytest.raises(Misconfigured, match="ulak db migrate"):
            await move(sqlite_address, bare)
    with server().bare_database() as bare:
        await move(sqlite_address, bare)
        assert counted(await finish(bare, clock)) == WAITED


# Interruptions


KILLED = """
import os, signal, sys
from ulak.cli.move import move_store
from ulak.settings import Settings
from ulak.stores import move

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

{patch}
move_store(Settings(store=sys.argv[1]), sys.argv[2])
"""
HALF_WAY = "copy = move._copy; move._copy = lambda s, t, table, a: die() if table == 'dead' else copy(s, t, table, a)"
BEFORE_THE_COMMIT = "set_seal = move.set_seal; move.set_seal = lambda *given: (set_seal(*given), die())"
AFTER_THE_COMMIT = """
set_seal = move.set_seal
move.set_seal = lambda source, seal: die() if seal.arrived else set_seal(source, seal)
"""


def be_killed(source, target, patch):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(patch=patch), source, target],
        env=environment, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


async def test_a_kill_half_way_leaves_the_target_empty_and_the_source_usable(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    be_killed(sqlite_address, target, HALF_WAY)
    assert not any(rows_in(target).values())
    runs = await finish(sqlite_address, clock)
    assert counted(runs) == WAITED


@pytest.mark.parametrize("patch", [HALF_WAY, BEFORE_THE_COMMIT, AFTER_THE_COMMIT], ids=["half", "before", "after"])
async def test_after_a_kill_the_same_command_finishes_the_move(sqlite_address, target, clock, patch):
    await fill(sqlite_address, clock)
    be_killed(sqlite_address, target, patch)
    await move(sqlite_address, target)
    assert counted(await finish(target, clock)) == WAITED


async def test_between_the_two_commits_neither_the_file_nor_another_target_is_open_to_work(
    sqlite_address, target, clock
):
    await fill(sqlite_address, clock)
    be_killed(sqlite_address, target, BEFORE_THE_COMMIT)
    with pytest.raises(Misconfigured, match="run the same ulak db move again"):
        await build(sqlite_address, clock).open()
    with fresh_database() as other, pytest.raises(Conflict, match="was interrupted; run that one again first"):
        await move(sqlite_address, other)


async def test_an_interrupted_move_that_is_refused_the_second_time_gives_the_file_free(sqlite_address, target, clock):
    await fill(sqlite_address, clock)
    be_killed(sqlite_address, target, BEFORE_THE_COMMIT)
    async with build(target, clock, work=False) as ulak:
        await ulak.enqueue("mail", 1)
    with pytest.raises(Conflict, match="work of its own"):
        await move(sqlite_address, target)
    assert (await finish(sqlite_address, clock)).order


async def test_a_lost_answer_to_the_commit_is_unknown_and_the_next_run_finds_out(
    sqlite_address, target, clock, monkeypatch
):
    await fill(sqlite_address, clock)
    set_seal = parts.set_seal

    def lose_the_connection(source, seal):
        set_seal(source, seal)
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    with monkeypatch.context() as patch:
        patch.setattr(parts, "set_seal", lose_the_connection)
        with pytest.raises(Unavailable, match="run the same command again") as caught:
            await move(sqlite_address, target)
    assert caught.value.outcome == "unknown"
    await move(sqlite_address, target)
    assert rows_in(target)["job"] > 0
    with opened(sqlite_address) as connection:
        assert read_seal(connection).arrived


# Completeness


def tables_of_sqlite():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, LINES, 0)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}


def tables_of_postgres(target):
    found = {}
    columns = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name NOT IN (SELECT viewname FROM pg_views)
    """
    for table, column in look(target, columns):
        found.setdefault(table, set()).add(column)
    return found


def test_every_table_is_moved_or_left_out_for_a_reason(target):
    """All but those that the spine leaves out; a table of one dialect alone has to be among them."""
    moved = set(parts.moved(LINES))
    here, there = tables_of_sqlite(), tables_of_postgres(target)
    assert moved | set(parts.LEFT_OUT) == set(here) | set(there)
    assert not moved & set(parts.LEFT_OUT)
    assert {table: here[table] for table in moved} == {table: there[table] for table in moved}


async def test_a_difference_in_the_numbers_moves_nothing(sqlite_address, target, clock, monkeypatch):
    await fill(sqlite_address, clock)
    copy = parts._copy
    monkeypatch.setattr(parts, "_copy", lambda s, t, table, a: None if table == "tally" else copy(s, t, table, a))
    with pytest.raises(Conflict, match="tally 0 instead of"):
        await move(sqlite_address, target)
    assert not any(rows_in(target).values())
    await build_and_close(sqlite_address, clock)
