"""`ulak db move`: what it says, and what it refuses before it looks any further. What it moves is in tests/flow."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.errors import Misconfigured, NotFound, Unavailable
from ulak.stores.sqlite.file_lock import FileLock

NOWHERE = "postgresql://ulak:secret@127.0.0.1:1/ulak"


@pytest.fixture
def target():
    with fresh_database() as found:
        yield found


def fill(number=3):
    async def work():
        async with Ulak("sqlite:///ulak.db", work=False) as made:
            for each in range(number):
                await made.enqueue("mail", each)

    asyncio.run(work())


def jobs_in(target):
    with psycopg.connect(target) as connection:
        return connection.execute("SELECT count(*) FROM job").fetchone()[0]


@pytest.mark.postgres
def test_a_dry_run_counts_and_changes_nothing(ulak, target):
    fill()
    before = Path("ulak.db").read_bytes()
    said = ulak("db", "move", "--to", target, "--dry-run")
    assert ["job", "3"] in [line.split() for line in said.splitlines()]
    assert "Nothing was changed." in said
    assert jobs_in(target) == 0
    assert Path("ulak.db").read_bytes() == before


@pytest.mark.postgres
def test_a_dry_run_beside_a_server_says_that_it_must_stop(folder, ulak, target):
    fill()
    lock = FileLock(folder / "ulak.db.lock")
    lock.take()
    said = ulak("db", "move", "--to", target, "--dry-run")
    lock.release()
    assert "stop it before the move" in said


@pytest.mark.postgres
def test_the_verdict_has_the_rows_of_every_table_on_both_sides(ulak, target):
    fill()
    said = ulak("db", "move", "--from", "sqlite:///ulak.db", "--to", target, "--set", "store=memory:")
    assert ["job", "3", "3"] in [line.split() for line in said.splitlines()]
    assert "the same number on both sides" in said
    assert "nobody can work on it any more" in said
    assert "3 unfinished jobs, none lost" in ulak("db", "check", "--set", f"store={target}")


@pytest.mark.postgres
def test_the_store_is_that_of_the_settings_and_a_moved_one_is_refused_by_every_command(ulak, target):
    fill()
    ulak("db", "move", "--to", target)
    for words in (("jobs", "list"), ("db", "check"), ("db", "migrate"), ("db", "move", "--to", target, "--dry-run")):
        with pytest.raises(Misconfigured, match="was moved to PostgreSQL"):
            ulak(*words)


@pytest.mark.postgres
def test_tables_of_somebody_else_are_named_and_stay(ulak, target):
    fill()
    connection = sqlite3.connect("ulak.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    connection.close()
    for more in (("--dry-run",), ()):
        assert "Not Ulak's, and so not moved: orders." in ulak("db", "move", "--to", target, *more)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--from", "sqlite:///nowhere.db", "--to", NOWHERE), NotFound),
        (("--from", "memory:", "--to", NOWHERE), Misconfigured),
        (("--from", NOWHERE, "--to", NOWHERE), Misconfigured),
        (("--to", "sqlite:///other.db"), Misconfigured),
        (("--from", "sqlite:///text.db", "--to", NOWHERE), Misconfigured),
        (("--from", "sqlite:///empty.db", "--to", NOWHERE), Misconfigured),
    ],
)
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_what_is_no_store_or_no_target_is_refused_and_nothing_is_made(folder, ulak, words, error, more):
    fill()
    (folder / "text.db").write_text("not a database, but long enough to be looked at " * 50)
    (folder / "empty.db").touch()
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(error):
        ulak("db", "move", *words, *more)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_target_that_can_not_be_reached_leaves_the_store_as_it_is(ulak):
    fill()
    for more in (("--dry-run",), ()):
        with pytest.raises(Unavailable):
            ulak("db", "move", "--to", NOWHERE, *more)
    assert "3 unfinished" in ulak("db", "check")
