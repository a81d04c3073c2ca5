"""A store and its copies hold secrets in clear, so others on the machine can't read them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat

import pytest

from tests.api.serving import serving
from ulak import Ulak
from ulak.errors import Conflict, Unavailable

STORE = "sqlite:///ulak.db"
ENDINGS = ("", "-wal", "-shm")


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


async def modes_while_open(folder, name="ulak.db"):
    async with Ulak(STORE, work=False) as ulak:
        await ulak.enqueue("mail")
        return {mode(folder / f"{name}{ending}") for ending in ENDINGS}


def test_a_new_store_is_its_owners_alone(folder):
    assert asyncio.run(modes_while_open(folder)) == {0o600}


def test_a_store_that_a_command_makes_is_its_owners_alone(folder, ulak):
    ulak("keys", "create", "ops", "--scope", "admin")
    assert mode(folder / "ulak.db") == 0o600


def test_a_store_behind_a_link_to_no_file_yet_is_its_owners_alone(folder):
    (folder / "ulak.db").symlink_to(folder / "elsewhere.db")
    assert asyncio.run(modes_while_open(folder, "elsewhere.db")) == {0o600}


async def test_a_store_is_one_by_whatever_link_it_is_called(folder):
    (folder / "current.db").symlink_to(folder / "ulak.db")
    async with Ulak(STORE):
        with pytest.raises(Conflict, match="another process"):
            await Ulak("sqlite:///current.db").open()
    assert not (folder / "current.db.lock").exists()


def test_the_mode_of_a_store_that_is_there_is_left_alone(folder, ulak):
    ulak("keys", "create", "ops", "--scope", "admin")
    (folder / "ulak.db").chmod(0o640)
    assert asyncio.run(modes_while_open(folder)) == {0o640}
    ulak("db", "backup", "backup.db")
    ulak("db", "restore", "backup.db", "--replace")
    assert mode(folder / "ulak.db") == 0o640


def test_a_backup_and_what_is_restored_from_it_are_their_owners_alone(folder, ulak):
    ulak("keys", "create", "ops", "--scope", "admin")
    ulak("db", "backup", "backup.db")
    assert mode(folder / "backup.db") == 0o600
    (folder / "backup.db").chmod(0o644)  # as if it came from another machine
    (folder / "ulak.db").unlink()
    ulak("db", "restore", "backup.db")
    assert mode(folder / "ulak.db") == 0o600


async def test_a_backup_over_http_is_its_owners_alone(folder):
    async with serving(work=False, store=f"sqlite:///{folder}/ulak.db") as served:
        assert (await served.post("/api/db/backup", {"name": "monday.db"})).status == 201
    assert mode(folder / "backups" / "monday.db") == 0o600


def test_a_backup_that_fails_leaves_no_file(folder, ulak):
    ulak("keys", "create", "ops", "--scope", "admin")
    with contextlib.closing(sqlite3.connect(folder / "ulak.db")) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'past'").fetchall()
    damaged = bytearray((folder / "ulak.db").read_bytes())
    damaged[4096 * (page - 1) : 4096 * page] = b"x" * 4096
    (folder / "ulak.db").write_bytes(damaged)
    with pytest.raises(Unavailable, match="the backup failed"):
        ulak("db", "backup", "backup.db")
    assert not (folder / "backup.db").exists()
