"""Work on the store's files that needs no open Ulak: the schema's version, and a copy."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ulak.cli.running_server import file_of
from ulak.clock import SystemClock
from ulak.errors import Misconfigured, NotFound, Unavailable
from ulak.masking import mask_url
from ulak.rooms import LINES
from ulak.settings import Settings
from ulak.stores.migrate import Migration, migrate_postgres, migrate_sqlite
from ulak.stores.sqlite.file_lock import FileLock
from ulak.stores.sqlite.private_file import discard, make_private
from ulak.stores.sqlite.reader import keep_off_foreign, open_reader
from ulak.stores.sqlite.session import open_writer, opening


def require_store(database: Path, hint: str = "") -> None:
    """For commands that make none: a store that is not there is a wrong address more often than a new beginning."""
    try:
        found = database.stat()
    except FileNotFoundError:
        found = None
    except OSError:  # whoever opens it is about to say why
        return
    if found is None or (stat.S_ISREG(found.st_mode) and not found.st_size):
        advice = "check the setting store, or start ulak serve, which makes it"
        raise NotFound(f"no store at {database}; {advice}{'.' if hint else ''}{hint}")


def migrate_store(settings: Settings) -> list[Migration]:
    """Apply all missing migrations; returns them."""
    now = SystemClock().now()
    database = file_of(settings.store)
    if database is not None:
        require_store(database)
        keep_off_foreign(database)
        with opening(database), locked(database), contextlib.closing(open_writer(database)) as connection:
            return migrate_sqlite(connection, LINES, now)
    if settings.store == "memory:":
        return []
    from ulak.stores.postgres.check import check_place
    from ulak.stores.postgres.connections import connect as connect_postgres
    from ulak.stores.postgres.session import in_our_words

    with in_our_words():
        check_place(partial(connect_postgres, settings.store), LINES)
        with contextlib.closing(connect_postgres(settings.store)) as session:
            return migrate_postgres(session, LINES, now)


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else has the store open meanwhile."""
    lock = FileLock(database.with_name(database.name + ".lock"))
    lock.take()
    try:
        yield
    finally:
        lock.release()


def back_up(settings: Settings, target: Path) -> None:
    database = file_of(settings.store)
    if database is None:
        raise Misconfigured(
            f"{mask_url(settings.store)} has no file to copy; check the setting store, or "
            f"for PostgreSQL run: pg_dump --format=custom --file={target}"
        )
    require_store(database)
    keep_off_foreign(database)
    make_private(target)
    try:
        with contextlib.closing(open_reader(database)) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        discard(target)
        raise Unavailable(f"the backup failed: {error}; nothing was written") from error
