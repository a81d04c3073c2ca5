"""SQLite's one writing session: commits groups, and translates the driver's errors."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from ulak.clock import Clock
from ulak.errors import Conflict, Invalid, Misconfigured, Unavailable
from ulak.ids import Ids, made_at, new_mark
from ulak.spine.capacity import Capacity
from ulak.spine.event import to_block
from ulak.spine.query import Queries
from ulak.spine.store import Block, Tx
from ulak.stores.sqlite.private_file import ensure_private
from ulak.stores.sqlite.tx import SqliteTx
from ulak.stores.writer.session import BatchFailed, CommitUnknown, Fatal

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

STATEMENTS = 512  # every statement of ours in all its sizes stays compiled

_NOT_OURS = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_FSYNC_FAILED = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}


class SqliteSession:
    """The writing connection."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], clock: Clock, capacity: Capacity, let_go: Callable[[], None]
    ) -> None:
        self._connect = connect
        self._let_go = let_go
        self._clock = clock
        self._capacity = capacity
        self._token = 0
        self._first = 0
        self._tx: SqliteTx | None = None
        self._changes = 0
        self._connection = connect()
        self.last_now = 0
        self._next = self._next_sequence()
        (newest,) = self._connection.execute(sql.newest_id.sqlite).fetchone()
        # Ids run ahead of the clock while many are taken in one millisecond, so the newest one counts as well.
        self._connection.execute(sql.keep_mark.sqlite, {"mark": str(new_mark())})
        (mark,) = self._connection.execute(sql.read_mark.sqlite).fetchone()
        self.ids = Ids(0, max(self.last_now, made_at(newest)), mark=int(mark))

    def _next_sequence(self) -> int:
        row = self._connection.execute(spine_sql.last_block.sqlite).fetchone()
        if row is None:
            return 1
        self.last_now = max(self.last_now, row[2])
        return int(row[0] + row[1])

    def turn_to_next_batch(self) -> None:
        """There is one writer: no batch meets another."""

    def begin(self) -> SqliteTx:
        self._connection.execute("BEGIN IMMEDIATE")
        self.last_now = max(self.last_now, self._clock.now())
        self._changes = self._connection.total_changes
        self._tx = SqliteTx(self._connection, self.last_now, self.ids, self._capacity)
        return self._tx

    def savepoint(self) -> None:
        self._connection.execute("SAVEPOINT item")

    def release(self) -> None:
        if self._tx is not None:
            self._tx.flush()
        self._connection.execute("RELEASE item")

    def rollback_to(self) -> None:
        if not self._connection.in_transaction:
            raise BatchFailed(sqlite3.OperationalError("the database rolled the whole transaction back"))
        if self._tx is not None:
            self._tx.forget()
        self._connection.execute("ROLLBACK TO item")
        self._connection.execute("RELEASE item")

    def commit(self, tx: Tx) -> None:
        assert isinstance(tx, SqliteTx)
        tx.flush()  # if it fails, each item is tried alone
        try:
            self._write_buffers(tx)
        except sqlite3.Error as error:
            self._fail_before_commit(error)
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail_commit(error)
        self._follow(tx)  # here and now: the next batch is decided by it

    def _write_buffers(self, tx: SqliteTx) -> None:
        buffers = tx.after_commit
        self._token = 0
        if buffers.counts:
            tx.execute(sql.add_tally, counts=[(word, kind, number) for (word, kind), number in buffers.counts.items()])
        if buffers.events:
            self._first, self._token = self._next, tx.ids.take(tx.now)
            count, body = to_block(buffers.events)
            buffers.block = Block(self._first, count, tx.now, body)
            tx.execute(sql.insert_block, first=self._first, count=count, at=tx.now, token=self._token, body=body)
            self._next += count
        elif self._connection.total_changes != self._changes:
            self._token = tx.ids.take(tx.now)
            tx.execute(sql.keep_token, token=self._token)

    def _fail_before_commit(self, error: sqlite3.Error) -> None:
        self.rollback()
        raise BatchFailed(error) from error

    def _fail_commit(self, error: sqlite3.Error) -> None:
        if error.sqlite_errorcode in _FSYNC_FAILED:
            raise Fatal(f"a sync to disk failed ({error}); the page cache can't be trusted") from error
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            self.rollback()
            raise BatchFailed(error) from error
        raise CommitUnknown(str(error)) from error

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._next = self._next_sequence()

    def reopen(self) -> None:
        try:
            self._connection.close()
            self._connection = self._connect()
            self._next = self._next_sequence()
        except sqlite3.Error as error:
            raise Fatal(f"the file can't be opened again ({error})") from error

    def committed(self) -> bool:
        """By its token. A commit without one changed nothing, and may as well run again."""
        if self._tx is None or not self._token:
            return False
        wanted = {"first": self._first, "token": self._token}
        try:
            found = self._connection.execute(sql.find_token.sqlite, wanted).fetchone() is not None
        except sqlite3.Error as error:
            raise Fatal(f"the fate of the last commit can't be found out ({error})") from error
        if found:
            self._follow(self._tx)
        return found

    def _follow(self, tx: Tx) -> None:
        self._capacity.apply(tx.after_commit.free)
        self._capacity.move(tx.after_commit.parked)

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def lost(self, error: BaseException) -> bool:
        if not isinstance(error, sqlite3.Error) or self._connection.in_transaction:
            return False
        # The database has rolled everything back by itself (disk full, I/O error): the whole batch is a definite no.
        raise BatchFailed(error)

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            self._let_go()


def open_writer(path: Path, synchronous: str = "FULL") -> sqlite3.Connection:
    """The one way to open the file for writing; the caller has its lock."""
    ensure_private(path)
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=5, check_same_thread=False, cached_statements=STATEMENTS
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    # A commit that checkpoints makes everybody wait: short waits more often are better than long ones.
    connection.execute("PRAGMA wal_autocheckpoint = 250")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    connection.execute("PRAGMA cache_size = -32000")
    # Erased personal data leaves no bytes in the file. Some builds of SQLite, such as Debian's, do this by default.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA analysis_limit = 1000")  # rows of an index that ANALYZE looks at: milliseconds
    return connection


@contextlib.contextmanager
def opening(path: Path) -> Iterator[None]:
    """A file that can't be opened, or is not one of ours, is a mistake in the settings."""
    try:
        yield
    except OSError as error:
        raise Misconfigured(f"{path} can't be opened ({error.strerror}); check the setting store") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_OURS:
            raise Misconfigured(f"{path} can't be opened ({error}); check the setting store") from error
        raise translate(error) from error


def translate(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_FULL:
        return Unavailable(
            f"the disk is full ({error}); nothing was kept of this request; free some space and try again"
        )
    if code == sqlite3.SQLITE_INTERRUPT:  # by the deadline of reads
        return Unavailable("the database took too long to answer; ask for less at a time")
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(f"the database refused the change: {error}")
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.DataError) or code == sqlite3.SQLITE_ERROR:
        return Invalid(f"the database can't take this value or statement: {error}")
    return Unavailable(f"the database failed: {error}")
