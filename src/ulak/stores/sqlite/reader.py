"""SQLite's readers: connections that can't write and never checkpoint, kept open, each with a deadline per read."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from ulak.clock import Clock
from ulak.spine.store import Tx
from ulak.stores.migrate import judge_owner
from ulak.stores.sqlite.session import opening, translate
from ulak.stores.writer.read_pool import READ_SECONDS, ReadPool

R = TypeVar("R")

_CHECK_DEADLINE_EVERY = 10_000  # virtual machine steps


def open_reader(path: Path) -> sqlite3.Connection:
    """`mode=ro`, not `query_only`: a query_only connection that closes last checkpoints and deletes the WAL."""
    return _open(path, "mode=ro")


def keep_off_foreign(path: Path) -> None:
    """Look at a file before it is locked and opened for writing: that alone would change one of another program."""
    with opening(path):
        if path.is_file():
            with contextlib.closing(_open(path, "mode=ro" if _is_under_way(path) else "immutable=1")) as connection:
                judge_owner(connection)


def _is_under_way(path: Path) -> bool:
    """Without a WAL the file alone is complete, and can be read without leaving a new WAL next to it."""
    return any(path.with_name(path.name + ending).exists() for ending in ("-wal", "-journal"))


def _open(path: Path, how: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path))}?{how}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=2, check_same_thread=False)


class Readers:
    """A long read would keep the WAL from being reset, so each ends after READ_SECONDS whatever it does."""

    def __init__(self, path: Path, clock: Clock, make_tx: Callable[[sqlite3.Connection], Tx]) -> None:
        self._path = path
        self._clock = clock
        self._make_tx = make_tx
        self._pool = ReadPool()
        self._own = threading.local()
        self._open: list[sqlite3.Connection] = []

    async def read(self, work: Callable[[Tx], R]) -> R:
        return await self._pool.run(lambda: self._read(work))

    def _read(self, work: Callable[[Tx], R]) -> R:
        connection = self._connection()
        ends_at = self._clock.monotonic() + READ_SECONDS
        connection.set_progress_handler(lambda: self._clock.monotonic() > ends_at, _CHECK_DEADLINE_EVERY)
        try:
            connection.execute("BEGIN")
            return work(self._make_tx(connection))
        except sqlite3.Error as error:
            raise translate(error) from error
        finally:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = open_reader(self._path)
            self._open.append(found)
        return found

    async def close(self, seconds: float) -> bool:
        """False when a read is stuck; the connections then go with the process."""
        if not await self._pool.close(seconds):
            return False
        for connection in self._open:
            connection.close()
        return True
