"""The store's schema: checked at every start, mended by one command."""

from __future__ import annotations

import sqlite3

import pytest

from ulak.errors import Conflict, Misconfigured
from ulak.stores.file_lock import FileLock
from ulak.stores.migrate import latest, migrations


def old_store():
    version, script = migrations("sqlite")[0]
    connection = sqlite3.connect("ulak.db")
    connection.executescript(f"{script}\nPRAGMA user_version = {version};")
    connection.close()


def test_an_old_schema_is_refused_and_the_fix_is_named(ulak):
    old_store()
    with pytest.raises(Misconfigured, match="run: ulak db migrate"):
        ulak("jobs", "list")


def test_migrate_brings_an_old_schema_up_to_date(ulak):
    old_store()
    assert ulak("db", "migrate") == f"Applied: {', '.join(map(str, range(2, latest('sqlite') + 1)))}.\n"
    assert ulak("db", "migrate") == "The schema is up to date.\n"
    assert "in order" in ulak("db", "check")


@pytest.mark.parametrize("command", [["jobs", "list"], ["db", "migrate"]], ids=" ".join)
def test_a_newer_schema_is_refused(ulak, command):
    ulak("db", "migrate")
    connection = sqlite3.connect("ulak.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(Misconfigured, match="install a newer release"):
        ulak(*command)


def test_migrate_keeps_off_a_store_in_use(folder, ulak):
    lock = FileLock(folder / "ulak.db.lock")
    lock.take()
    with pytest.raises(Conflict, match="another process"):
        ulak("db", "migrate")
    lock.release()


@pytest.mark.parametrize("command", [["jobs", "list"], ["db", "migrate"], ["db", "check"]], ids=" ".join)
@pytest.mark.parametrize("file", ["notes.txt", "folder", "notes.txt/ulak.db"])
def test_a_store_that_is_no_database_is_named_and_left_alone(folder, ulak, command, file):
    (folder / "notes.txt").write_text("not a database, but precious " * 100)
    (folder / "folder").mkdir()
    with pytest.raises(Misconfigured, match="can't be opened"):
        ulak(*command, "--set", f"store=sqlite:///{file}")
    assert (folder / "notes.txt").read_text() == "not a database, but precious " * 100


def test_migrate_in_a_folder_that_is_not_there_says_so(ulak):
    with pytest.raises(Misconfigured, match="No such file or directory"):
        ulak("db", "migrate", "--set", "store=sqlite:///nowhere/ulak.db")
