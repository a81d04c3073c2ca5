"""SQLite's transaction and its one writing session: statements, group commit, and what each driver error means."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from ulak import codec
from ulak.clock import Clock
from ulak.errors import Conflict, Invalid, Unavailable
from ulak.ids import Ids, made_at
from ulak.spine.job import Lease, Row
from ulak.spine.query import Queries, Query
from ulak.spine.store import Ledger, N, Tx
from ulak.stores.writer import BatchFailed, CommitUnknown, Fatal

sql = Queries("ulak.spine")

# One statement of many rows gives the interpreter lock away once, not once a row. Usual jobs have a statement for every
# number of rows, because they are most of the work; for the rest there are few, since each has to be compiled.
MOST_ROWS = 64
ROWS_PER_STATEMENT = (64, 16, 4, 1)
# expires_at, unique_key, continuation and hold of a job that has none of these.
_USUAL_COLUMNS = (None, None, None, 0)
_USUAL_PARAMETERS = 6
_FSYNC_FAILED = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")


class SqliteTx(Tx):
    def __init__(self, connection: sqlite3.Connection, now: int, ids: Ids, ledger: Ledger) -> None:
        super().__init__(now, ids, ledger)
        self._connection = connection

    def all(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.sqlite, _bound(parameters)).fetchall()

    def run(self, query: Query, **parameters: Any) -> int:
        return self._connection.execute(query.sqlite, _bound(parameters)).rowcount

    def many(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        start = 0
        for size in ROWS_PER_STATEMENT:
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                found += self._connection.execute(_expanded(query.sqlite, size, len(rows[0])), values).fetchall()
                start += size
        return found

    def insert(self, rows: Sequence[Row]) -> None:
        """New jobs. Most of their columns are usual and need no parameter of their own, which halves the time."""
        usual: defaultdict[tuple[str, int, int], list[Any]] = defaultdict(list)
        others = []
        for row in rows:
            if row[9:13] == _USUAL_COLUMNS and row.due_at == row.accepted_at:
                usual[row.kind, row.prio, row.slots] += (row.id, row.key, row.slot, row.state, row.due_at, row.payload)
            else:
                others.append(row)
        for shared, values in usual.items():
            self._insert_usual(shared, values)
        self.many(sql.insert_jobs, others)

    def _insert_usual(self, shared: tuple[Any, ...], values: list[Any]) -> None:
        whole = MOST_ROWS * _USUAL_PARAMETERS
        for start in range(0, len(values), whole):
            part = values[start : start + whole]
            self._connection.execute(_insert_usual(len(part) // _USUAL_PARAMETERS), [*shared, *part])

    def records(self, query: Query, shape: type[N], /, **parameters: Any) -> list[N]:
        """The statement packs its rows into one JSON text: fetched one by one, each would give the lock away."""
        (packed,) = self._connection.execute(query.sqlite, _bound(parameters)).fetchone()
        found: list[N] = _decoder_of(shape).decode(packed)
        return found

    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        (ids,) = self._connection.execute(sql.find_ready.sqlite, {"kind": kind, "prio": prio, "n": limit}).fetchone()
        if ids == "[]":
            return []
        self._connection.execute(sql.lease_jobs.sqlite, {"owner": owner, "now": self.now, "ids": ids})
        return sorted(self.records(sql.read_claimed, Lease, ids=ids))

    def each(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> None:
        self._connection.executemany(_positional(query.sqlite), rows)

    def lock_keys(self, keys: Sequence[str]) -> None:
        """There is one writer: every key is held already."""


@lru_cache
def _decoder_of(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]


def _bound(parameters: dict[str, Any]) -> dict[str, Any]:
    for name, value in parameters.items():
        if type(value) is list:
            parameters[name] = codec.encode_text(value)
    return parameters


@lru_cache
def _insert_usual(rows: int) -> str:
    """The statement with kind, priority and slots bound once, and six parameters a row."""
    first = range(4, 4 + rows * _USUAL_PARAMETERS, _USUAL_PARAMETERS)
    values = [f"(?{n},?1,?{n + 1},?3,?{n + 2},?2,?{n + 4},?{n + 3},?{n + 4},NULL,NULL,NULL,0,?{n + 5})" for n in first]
    return sql.insert_jobs.sqlite.replace(":rows", ",".join(values))


_texts: dict[tuple[str, int, int], str] = {}


def _expanded(text: str, rows: int, columns: int) -> str:
    """The statement with :rows written out as that many tuples of placeholders."""
    found = _texts.get((text, rows, columns))
    if found is None:
        one = "(" + ",".join("?" * columns) + ")"
        found = _texts[(text, rows, columns)] = text.replace(":rows", ",".join([one] * rows))
    return found


def _positional(text: str) -> str:
    """The statement with its parameters by position, in the order in which they stand."""
    found = _texts.get((text, 0, 0))
    if found is None:
        found = _texts[(text, 0, 0)] = _PARAMETER.sub("?", text)
    return found


class SqliteSession:
    """The writing connection."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], clock: Clock, ledger: Ledger) -> None:
        self._connect = connect
        self._clock = clock
        self._ledger = ledger
        self._token = 0
        self._first = 0
        self._tx: Tx | None = None
        self._changes = 0
        self._connection = connect()
        self.last_now = 0
        self._next = self._next_sequence()
        (newest,) = self._connection.execute(sql.newest_id.sqlite).fetchone()
        # Ids run ahead of the clock while many are taken in one millisecond, so the newest one counts as well.
        self.ids = Ids(0, max(self.last_now, made_at(newest)))

    def _next_sequence(self) -> int:
        row = self._connection.execute(sql.last_block.sqlite).fetchone()
        if row is None:
            return 1
        self.last_now = max(self.last_now, row[2])
        return int(row[0] + row[1])

    def begin(self) -> Tx:
        self._connection.execute("BEGIN IMMEDIATE")
        self.last_now = max(self.last_now, self._clock.now())
        self._changes = self._connection.total_changes
        return SqliteTx(self._connection, self.last_now, self.ids, self._ledger)

    def savepoint(self) -> None:
        self._connection.execute("SAVEPOINT item")

    def release(self) -> None:
        self._connection.execute("RELEASE item")

    def rollback_to(self) -> None:
        if not self._connection.in_transaction:
            raise BatchFailed(sqlite3.OperationalError("the database rolled the whole transaction back"))
        self._connection.execute("ROLLBACK TO item")
        self._connection.execute("RELEASE item")

    def commit(self, tx: Tx) -> None:
        try:
            self._write_buffers(tx)
        except sqlite3.Error as error:
            self._fail_before_commit(error)
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail_commit(error)
        self._ledger.apply(tx.buffers.room)  # here and now: the next batch is decided by it

    def _write_buffers(self, tx: Tx) -> None:
        buffers = tx.buffers
        self._tx, self._token = tx, 0
        if buffers.counts:
            tx.run(sql.add_tally, counts=[(word, kind, number) for (word, kind), number in buffers.counts.items()])
        if buffers.events:
            self._first, self._token = self._next, tx.ids.take(tx.now)
            body = msgspec.msgpack.encode(buffers.events)
            tx.run(
                sql.insert_block, first=self._first, count=len(buffers.events), at=tx.now, token=self._token, body=body
            )
            self._next += len(buffers.events)
        elif self._connection.total_changes != self._changes:
            self._token = tx.ids.take(tx.now)
            tx.run(sql.keep_token, token=self._token)

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
            self._ledger.apply(self._tx.buffers.room)
        return found

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def lost(self, error: BaseException) -> bool:
        if not isinstance(error, sqlite3.Error) or self._connection.in_transaction:
            return False
        # The database has rolled everything back by itself (disk full, I/O error): the whole batch is a definite no.
        raise BatchFailed(error)

    def close(self) -> None:
        self._connection.close()


def translate(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_FULL:
        return Unavailable(
            f"the disk is full ({error}); nothing was kept of this request; free some space and try again"
        )
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(f"the database refused the change: {error}")
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.DataError) or code == sqlite3.SQLITE_ERROR:
        return Invalid(f"the database can't take this value or statement: {error}")
    return Unavailable(f"the database failed: {error}")
