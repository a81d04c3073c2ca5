"""From a backup to the store: a checked copy, its leases void, its unfinished work held, put in place in one step."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

from ulak.app import Ulak
from ulak.cli import logs
from ulak.cli.running_server import file_of
from ulak.cli.schema import locked, require_store
from ulak.clock import SystemClock, to_datetime
from ulak.errors import Conflict, Invalid, Misconfigured, NotFound, Unavailable
from ulak.masking import mask_url
from ulak.rooms import LINES
from ulak.settings import Settings
from ulak.spine.units.hold import hold_all
from ulak.stores.migrate import FORMAT, migrate_sqlite, sqlite_format
from ulak.stores.sqlite.private_file import make_private
from ulak.stores.sqlite.session import open_writer

_BESIDE = ("", "-wal", "-shm")
_LEFT_BY_OPENING = (".lock", ".ballast", "-wal", "-shm")


def restore_store(settings: Settings, backup: Path, *, replace: bool) -> int:
    """Put the backup in place of the store; return how many jobs are held."""
    database = file_of(settings.store)
    if database is None:
        raise Misconfigured(
            f"{mask_url(settings.store)} is not a SQLite file; for PostgreSQL use pg_restore, and then: ulak db hold"
        )
    if not backup.is_file():
        raise NotFound(f"no backup at {backup}; name a file that ulak db backup has written")
    with locked(database):
        if database.exists() and not replace:
            raise Conflict(f"{database} exists; --replace puts it aside")
        copy = database.with_name(database.name + ".restoring")
        try:
            return _put_in_place(settings, backup, copy, database)
        finally:
            _clean(copy)


def _put_in_place(settings: Settings, backup: Path, copy: Path, database: Path) -> int:
    _prepare(backup, copy)
    held = hold_store(settings.model_copy(update={"store": f"sqlite:///{copy}"}))
    _fold(copy)
    if database.exists():
        shutil.copymode(database, copy)  # whoever may read the store that it replaces
    _put_aside(database)
    copy.replace(database)
    _sync_folder(database.parent)
    return held


def _prepare(backup: Path, copy: Path) -> None:
    """A copy of the backup that is sound and has this release's schema."""
    _clean(copy)
    make_private(copy)
    try:
        shutil.copyfile(backup, copy)
    except OSError as error:
        raise Unavailable(f"{backup} can't be copied to {copy} ({error.strerror}); the store is as it was") from error
    try:
        with contextlib.closing(open_writer(copy)) as connection:
            verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
            found = sqlite_format(connection)
            if verdict != "ok":
                raise Invalid(f"{backup} is damaged: {verdict}")
            if found != FORMAT:
                raise Invalid(f"{backup} has format {found}, which this release does not know; is it a backup of Ulak?")
            migrate_sqlite(connection, LINES, SystemClock().now())
    except Misconfigured:  # it speaks of the copy, and of the setting store
        raise Invalid(f"{backup} belongs to another program; name a backup of Ulak") from None
    except sqlite3.DatabaseError as error:
        raise Invalid(f"{backup} is not a SQLite database: {error}") from error


def hold_store(settings: Settings) -> int:
    if (database := file_of(settings.store)) is not None:
        require_store(database)
    logs.set_up_quietly(settings.log)
    return asyncio.run(_hold(settings))


async def _hold(settings: Settings) -> int:
    async with Ulak(settings=settings, work=False) as ulak:
        return await ulak.store.write(hold_all, ulak.store.owner, settings.spine.poison_deaths)


def _fold(copy: Path) -> None:
    """Everything into the one file that is put in place."""
    with contextlib.closing(open_writer(copy)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with copy.open("rb") as file:
        os.fsync(file.fileno())


def _put_aside(database: Path) -> None:
    stamp = to_datetime(SystemClock().now()).strftime("%Y%m%d-%H%M%S.%f")  # two within a second must not meet
    for ending in _BESIDE:
        present = database.with_name(database.name + ending)
        if present.exists():
            present.rename(database.with_name(f"{database.name}.before-{stamp}{ending}"))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clean(copy: Path) -> None:
    for ending in ("", *_LEFT_BY_OPENING):
        copy.with_name(copy.name + ending).unlink(missing_ok=True)
