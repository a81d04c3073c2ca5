"""Backup and restore: a copy is whole, and what comes back holds still until it is told to go."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3

import pytest

from ulak import Ulak
from ulak.errors import Conflict, Invalid, Misconfigured, NotFound, Unavailable
from ulak.stores.sqlite.file_lock import FileLock
from ulak.testing import drain

STORE = "sqlite:///ulak.db"


def with_mail(ran):
    made = Ulak(STORE)

    @made.handles("mail")
    async def mail(job):
        ran.append(job.id)

    return made


async def fill(number):
    async with Ulak(STORE, work=False) as made:
        return [await made.enqueue("mail", key="one" if each % 2 else None) for each in range(number)]


async def work(ran):
    async with with_mail(ran) as made:
        await made.loops.alarm.promote_due()
        await drain(made)


def lease_one():
    """As if the backup had been made while a job was running."""
    connection = sqlite3.connect("backup.db")
    connection.execute(
        "UPDATE job SET state = 2, owner = 7, epoch = 1, attempt = 1 WHERE id = (SELECT min(id) FROM job)"
    )
    connection.commit()
    connection.close()


def test_restored_work_is_held_until_it_is_let_go(ulak):
    ids, ran = asyncio.run(fill(4)), []
    ulak("db", "backup", "backup.db")
    lease_one()
    assert "4 unfinished jobs are held" in ulak("db", "restore", "backup.db", "--replace")
    asyncio.run(work(ran))
    assert ran == []
    assert "4 are held" in ulak("db", "check")
    assert ulak("db", "resume") == "4 jobs were let go.\n"
    asyncio.run(work(ran))
    assert sorted(ran) == ids


def test_a_lease_in_a_backup_is_void_and_its_attempt_uncertain(ulak):
    ids = asyncio.run(fill(1))
    ulak("db", "backup", "backup.db")
    lease_one()
    ulak("db", "restore", "backup.db", "--replace")
    assert "uncertain (1)" in ulak("jobs", "show", str(ids[0]))


def test_new_work_runs_while_the_old_is_held(ulak):
    asyncio.run(fill(2))
    ulak("db", "backup", "backup.db")
    ulak("db", "restore", "backup.db", "--replace")
    new, ran = asyncio.run(fill(2)), []
    asyncio.run(work(ran))
    assert sorted(ran) == new


def test_a_restored_store_has_an_identity_of_its_own(folder, ulak):
    asyncio.run(fill(1))
    ulak("db", "backup", "backup.db")
    seen = set()
    for _ in range(2):
        ulak("db", "restore", "backup.db", "--replace")
        connection = sqlite3.connect("ulak.db")
        seen |= set(connection.execute("SELECT value FROM meta WHERE name = 'store_id'"))
        connection.close()
    assert len(seen) == 2
    aside = {path.name for path in folder.glob("ulak.db.before-*") if not path.name.endswith(("-wal", "-shm"))}
    assert len(aside) == 2  # both old ones are kept, though a second had not passed


def test_a_present_store_is_put_aside_and_not_lost(folder, ulak):
    asyncio.run(fill(3))
    ulak("db", "backup", "backup.db")
    with pytest.raises(Conflict, match="--replace"):
        ulak("db", "restore", "backup.db")
    ulak("db", "restore", "backup.db", "--replace")
    (aside,) = [path for path in folder.glob("ulak.db.before-*") if not path.name.endswith(("-wal", "-shm"))]
    connection = sqlite3.connect(aside)
    assert connection.execute("SELECT count(*) FROM job").fetchone() == (3,)
    connection.close()
    assert list(folder.glob("*.restoring*")) == []


def test_a_store_in_use_is_not_replaced(folder, ulak):
    asyncio.run(fill(1))
    ulak("db", "backup", "backup.db")
    lock = FileLock(folder / "ulak.db.lock")
    lock.take()
    with pytest.raises(Conflict, match="another process"):
        ulak("db", "restore", "backup.db", "--replace")
    lock.release()


def test_what_is_no_backup_is_refused_and_nothing_is_touched(folder, ulak):
    asyncio.run(fill(1))
    (folder / "text.db").write_text("not a database, but long enough to be looked at " * 50)
    sqlite3.connect("empty.db").close()
    for name in ("text.db", "empty.db"):
        with pytest.raises(Invalid):
            ulak("db", "restore", name, "--replace")
    with pytest.raises(NotFound):
        ulak("db", "restore", "nowhere.db", "--replace")
    assert "1 unfinished" in ulak("db", "check")


def test_a_backup_overwrites_nothing(folder, ulak):
    asyncio.run(fill(1))
    (folder / "precious").write_text("x")
    with pytest.raises(Conflict, match="exists already"):
        ulak("db", "backup", "precious")


@pytest.mark.parametrize("words", [("backup", "x.db"), ("restore", "x.db")])
def test_other_stores_are_told_their_own_way(words, ulak):
    with pytest.raises(Misconfigured, match="PostgreSQL"):
        ulak("db", *words, "--set", "store=postgresql://nowhere/ulak")


@contextlib.contextmanager
def no_room_for_more_than(size):
    """As on a full disk: no file grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def fill_much():
    async with Ulak(STORE, work=False) as made:
        for _ in range(100):  # more than SQLite keeps in memory
            await made.enqueue("mail", "x" * 50_000)


def test_a_backup_that_finds_no_room_leaves_nothing_behind(folder, ulak):
    asyncio.run(fill_much())
    with no_room_for_more_than(200_000), pytest.raises(Unavailable, match="nothing was written"):
        ulak("db", "backup", "backup.db")
    assert not list(folder.glob("backup.db*"))


def test_a_restore_that_finds_no_room_says_so_and_leaves_the_store_as_it_was(folder, ulak):
    asyncio.run(fill_much())
    ulak("db", "backup", "backup.db")
    before = (folder / "ulak.db").read_bytes()
    with no_room_for_more_than(200_000), pytest.raises(Unavailable, match="the store is as it was"):
        ulak("db", "restore", "backup.db", "--replace")
    assert (folder / "ulak.db").read_bytes() == before
    assert not list(folder.glob("*.restoring*"))
