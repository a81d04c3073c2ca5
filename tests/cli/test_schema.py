"""The store's schema: checked at every start, mended by one command."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from ulak import Ulak
from ulak.errors import Conflict, Error, Invalid, Misconfigured, NotFound
from ulak.rooms import LINES
from ulak.stores.migrate import FORMAT, ONLY_SPINE, migrate_sqlite, migrations
from ulak.stores.sqlite.file_lock import FileLock


def old_store():
    """One of a release that had no rooms."""
    with contextlib.closing(sqlite3.connect("ulak.db", isolation_level=None)) as connection:
        migrate_sqlite(connection, ONLY_SPINE, 0)


def test_an_old_schema_is_refused_and_the_fix_is_named(ulak):
    old_store()
    with pytest.raises(Misconfigured, match="schema of access is at 0, this release needs 1; run: ulak db migrate"):
        ulak("jobs", "list")


def test_migrate_brings_an_old_schema_up_to_date(ulak):
    old_store()
    expected = [str(one) for line in LINES if line not in ONLY_SPINE for one in migrations(line, "sqlite")]
    assert expected
    assert ulak("db", "migrate") == f"Applied: {', '.join(expected)}.\n"
    assert ulak("db", "migrate") == "The schema is up to date.\n"
    assert "in order" in ulak("db", "check")


@pytest.mark.parametrize("command", [["jobs", "list"], ["db", "migrate"]], ids=" ".join)
def test_a_newer_schema_is_refused(ulak, command):
    old_store()
    with contextlib.closing(sqlite3.connect("ulak.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO schema_version VALUES ('notify', 999, 0)")
    with pytest.raises(Misconfigured, match=r"notify is at 999, this release knows up to \d+; install a newer release"):
        ulak(*command)


@pytest.mark.parametrize("command", [["jobs", "list"], ["db", "migrate"]], ids=" ".join)
@pytest.mark.parametrize(("found", "told"), [(FORMAT + 1, "install a newer release"), (5, "before the first release")])
def test_a_file_of_another_format_is_refused(ulak, command, found, told):
    old_store()
    with contextlib.closing(sqlite3.connect("ulak.db", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {found}")
    with pytest.raises(Misconfigured, match=told):
        ulak(*command)


def test_migrate_keeps_off_a_store_in_use(folder, ulak):
    old_store()
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
    with pytest.raises(Misconfigured, match=r"can't be opened|there is no folder"):
        ulak(*command, "--set", f"store=sqlite:///{file}")
    assert (folder / "notes.txt").read_text() == "not a database, but precious " * 100


WITHOUT_NEWS = [
    ["jobs", "list"],
    ["jobs", "show", "1"],
    ["dead", "list"],
    ["breakers", "list"],
    ["events"],
    ["keys", "list"],
    ["notify", "list"],
    ["notify", "show", "1"],
    ["compute", "result", "1"],
    ["db", "check"],
    ["db", "backup", "copy.db"],
    ["db", "migrate"],
]


@pytest.mark.parametrize("command", WITHOUT_NEWS, ids=" ".join)
def test_who_adds_nothing_makes_no_store(folder, ulak, command):
    with pytest.raises(NotFound, match=r"no store at nowhere/ulak\.db; check the setting store, or start ulak serve"):
        ulak(*command, "--set", "store=sqlite:///nowhere/ulak.db")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", WITHOUT_NEWS, ids=" ".join)
def test_who_adds_nothing_leaves_an_empty_file_empty(folder, ulak, command):
    (folder / "ulak.db").touch()
    with pytest.raises(NotFound, match=r"no store at ulak\.db"):
        ulak(*command)
    assert {file.name: file.stat().st_size for file in folder.iterdir()} == {"ulak.db": 0}


def test_who_adds_something_makes_the_store(folder, ulak):
    ulak("keys", "create", "ops", "--scope", "admin")
    assert (folder / "ulak.db").stat().st_size


@pytest.mark.parametrize("version", [0, 1, FORMAT, 9], ids="format {}".format)
@pytest.mark.parametrize(
    "command",
    [
        ["jobs", "list"],
        ["keys", "create", "ops", "--scope", "admin"],
        ["db", "check"],
        ["db", "migrate"],
        ["db", "backup", "copy.db"],
        ["db", "hold"],
        ["serve"],
        ["worker"],
    ],
    ids=" ".join,
)
def test_a_database_of_another_program_is_named_and_left_alone(folder, ulak, command, version):
    connection = sqlite3.connect("ulak.db")
    connection.executescript(f"CREATE TABLE meta (song TEXT); PRAGMA user_version = {version};")
    connection.close()
    before = (folder / "ulak.db").read_bytes()
    with pytest.raises(Misconfigured, match=r"ulak\.db belongs to another program; name a file of its own"):
        ulak(*command, "--set", "http.port=0")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"ulak.db": before}


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_an_embedded_ulak_leaves_a_database_of_another_program_as_it_is(folder, mode):
    connection = sqlite3.connect("ulak.db")
    connection.executescript(f"PRAGMA journal_mode = {mode}; CREATE TABLE song (name TEXT);")
    connection.close()
    before = (folder / "ulak.db").read_bytes()
    with pytest.raises(Misconfigured, match="belongs to another program"):
        await Ulak("sqlite:///ulak.db").open()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"ulak.db": before}


async def test_a_database_that_another_program_has_open_is_judged_by_what_it_has_written_so_far(folder):
    connection = sqlite3.connect("ulak.db")
    connection.executescript("PRAGMA journal_mode = wal; CREATE TABLE song (name TEXT);")
    before = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    with pytest.raises(Misconfigured, match="belongs to another program"):
        await Ulak("sqlite:///ulak.db").open()
    assert {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")} == before
    connection.close()


@pytest.mark.parametrize("dry_run", [["--dry-run"], []], ids=" ".join)
def test_a_database_of_another_program_is_not_moved(folder, ulak, dry_run):
    connection = sqlite3.connect("song.db")
    connection.executescript(f"CREATE TABLE song (name TEXT); PRAGMA user_version = {FORMAT};")
    connection.close()
    with pytest.raises(Misconfigured, match=r"song\.db belongs to another program"):
        ulak("db", "move", "--from", "sqlite:///song.db", "--to", "postgresql://127.0.0.1:1/ulak", *dry_run)


def test_a_database_of_another_program_is_no_backup(folder, ulak):
    connection = sqlite3.connect("song.db")
    connection.executescript(f"CREATE TABLE song (name TEXT); PRAGMA user_version = {FORMAT};")
    connection.close()
    with pytest.raises(Invalid, match=r"^song\.db belongs to another program; name a backup of Ulak"):
        ulak("db", "restore", "song.db")
    assert not (folder / "ulak.db").exists()


async def test_a_first_start_that_breaks_off_leaves_an_empty_file_that_the_next_one_fills(folder, monkeypatch):
    def broken(line, dialect):
        return [one._replace(script="INSERT INTO nowhere VALUES (1);") for one in migrations(line, dialect)]

    with monkeypatch.context() as patched:
        patched.setattr(
            "ulak.stores.migrate.migrations", lambda *of: (broken if of[0].name == "notify" else migrations)(*of)
        )
        with pytest.raises(Error):
            await Ulak("sqlite:///ulak.db", work=False).open()
    async with Ulak("sqlite:///ulak.db", work=False) as made:
        assert await made.enqueue("mail")
