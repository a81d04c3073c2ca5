"""SQLite's transaction: statements of many rows, and new jobs that wait for a claim of the same commit."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec

from ulak import codec
from ulak.ids import Ids
from ulak.spine.capacity import Capacity
from ulak.spine.job import LEASED, READY, Lease, Row
from ulak.spine.outcome import Settlement
from ulak.spine.query import PARAMETER, Queries, Query
from ulak.spine.store import S, Tx
from ulak.stores.sqlite.finish import finish_simple

sql = Queries(__package__)

# One statement of many rows gives the interpreter lock away once, not once a row. New jobs have a statement for every
# number of rows, because they are most of the work; for the rest there are few, since each has to be compiled.
MAX_ROWS = 64
ROWS_PER_STATEMENT = (64, 16, 4, 1)
# Most new jobs differ in few columns, so the others are bound once for all that have them in common.
_OWN_NAMES = ("id", "due_at", "accepted_at", "payload")
_SHARED_NAMES = tuple(name for name in Row._fields if name not in _OWN_NAMES)
_LEASED_NAMES = ("id", "key", "due_at", "accepted_at", "expires_at", "payload", "trace")
_own, _shared, _leased, _sort = (
    itemgetter(*map(Row._fields.index, names))
    for names in (_OWN_NAMES, _SHARED_NAMES, _LEASED_NAMES, ("kind", "prio", "state"))
)
_STATE = _SHARED_NAMES.index("state")
_NOT_STARTED = (0, None, None)  # attempt and epoch, owner, started_at


class SqliteTx(Tx):
    def __init__(self, connection: sqlite3.Connection, now: int, ids: Ids, capacity: Capacity) -> None:
        super().__init__(now, ids, capacity)
        self._connection = connection
        self._fresh: list[Row] = []

    def rows(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        self.flush()
        return self._connection.execute(query.sqlite, _bound(parameters)).fetchall()

    def execute(self, query: Query, **parameters: Any) -> int:
        self.flush()
        return self._connection.execute(query.sqlite, _bound(parameters)).rowcount

    def insert_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for cursor in self._run_rows(query, rows):
            found += cursor.fetchall()
        return found

    def _run_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> Iterator[sqlite3.Cursor]:
        """As few statements as the rows need, each read to its end before the next runs."""
        self.flush()
        start = 0
        for size in ROWS_PER_STATEMENT:
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                yield self._connection.execute(_expanded(query.sqlite, size, len(rows[0])), values)
                start += size

    def insert(self, rows: Sequence[Row]) -> None:
        """They wait until this transaction does something else: a claim that comes first may start them as they are."""
        self._fresh += rows

    def flush(self) -> None:
        """Store the new jobs that no claim has taken."""
        if self._fresh:
            rows, self._fresh = self._fresh, []
            self._store(rows, None, _NOT_STARTED)

    def forget(self) -> None:
        """Drop new jobs that are not stored yet: they were undone."""
        self._fresh = []

    def _store(self, rows: Sequence[Row], state: int | None, started: tuple[Any, ...]) -> None:
        for shared, own in _alike(rows).items():
            if state is not None:
                shared = (*shared[:_STATE], state, *shared[_STATE + 1 :])
            self._store_alike((*shared, *started), own)

    def _store_alike(self, shared: tuple[Any, ...], own: list[Any]) -> None:
        whole = MAX_ROWS * len(_OWN_NAMES)
        for start in range(0, len(own), whole):
            part = own[start : start + whole]
            self._connection.execute(_insert_alike(len(part) // len(_OWN_NAMES)), [*shared, *part])

    def rows_as(self, query: Query, shape: type[S], /, **parameters: Any) -> list[S]:
        self.flush()
        return self._records(query, shape, parameters)

    def _records(self, query: Query, shape: type[S], parameters: dict[str, Any]) -> list[S]:
        """The statement packs its rows into one JSON text: fetched one by one, each would give the lock away."""
        (packed,) = self._connection.execute(query.sqlite, _bound(parameters)).fetchone()
        found: list[S] = _decoder_of(shape).decode(packed)
        return found

    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        leases = self._claim_stored(owner, kind, prio, limit)
        if self._fresh and len(leases) < limit:
            leases += self._start(owner, kind, prio, limit - len(leases))
        return leases

    def ready_levels(self, levels: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        (found,) = self._connection.execute(sql.find_levels.sqlite, _bound({"levels": list(levels)})).fetchone()
        fresh = {(kind, prio) for kind, prio, state in map(_sort, self._fresh) if state == READY}
        return {(kind, prio) for kind, prio in codec.decode(found)} | fresh.intersection(levels)

    def _claim_stored(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        (ids,) = self._connection.execute(sql.find_ready.sqlite, {"kind": kind, "prio": prio, "n": limit}).fetchone()
        if ids == "[]":
            return []
        self._connection.execute(sql.lease_jobs.sqlite, {"owner": owner, "now": self.now, "ids": ids})
        return self._records(sql.read_claimed, Lease, {"ids": ids})

    def _start(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        """New jobs that can start at once are stored as started: accepted and claimed by one insert."""
        wanted, fitting = (kind, prio, READY), self._fresh
        sorts = set(map(_sort, fitting))
        if wanted not in sorts:
            return []
        if len(sorts) > 1:
            fitting = [row for row in fitting if _sort(row) == wanted]
        taken = fitting[:limit]
        self._store(taken, LEASED, (1, owner, self.now))
        self._fresh = [] if len(taken) == len(self._fresh) else _without(taken, self._fresh)
        return [
            Lease(identifier, 1, kind, key, prio, 1, 0, accepted_at, due_at, expires_at, payload, trace)
            for identifier, key, due_at, accepted_at, expires_at, payload, trace in map(_leased, taken)
        ]

    def update_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> int:
        if ":rows" in query.sqlite:
            return sum(cursor.rowcount for cursor in self._run_rows(query, rows))
        self.flush()
        return self._connection.executemany(_positional(query.sqlite), rows).rowcount

    def finish(self, ended: Sequence[Settlement]) -> set[tuple[int, int]]:
        return finish_simple(self, ended)

    def lock_keys(self, keys: Sequence[str]) -> None:
        """There is one writer: every key is held already."""


def _without(taken: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    gone = {row.id for row in taken}
    return [row for row in rows if row.id not in gone]


def _alike(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Any]]:
    """Return the values that rows have in common, and the rest of each row one after another."""
    seen = set(map(_shared, rows))
    if len(seen) == 1:  # the usual case
        return {seen.pop(): list(chain.from_iterable(map(_own, rows)))}
    found: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        found[_shared(row)] += _own(row)
    return found


_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def _decoder_of(shape: type[Any]) -> msgspec.json.Decoder[Any]:
    found = _decoders.get(shape)
    if found is None:
        found = _decoders[shape] = msgspec.json.Decoder(list[shape])  # type: ignore[valid-type]
    return found


def _bound(parameters: dict[str, Any]) -> dict[str, Any]:
    for name, value in parameters.items():
        if type(value) is list:
            parameters[name] = codec.encode_text(value)
    return parameters


@lru_cache
def _insert_alike(rows: int) -> str:
    """Return the statement: shared columns, then attempt and epoch, owner, start; then each job's own."""
    shared = {name: f"?{number}" for number, name in enumerate(_SHARED_NAMES, 1)}
    attempt, owner, started_at = (f"?{len(shared) + number}" for number in (1, 2, 3))
    values = []
    for row in range(rows):
        first = len(shared) + 4 + row * len(_OWN_NAMES)
        columns = shared | {name: f"?{number}" for number, name in enumerate(_OWN_NAMES, first)}
        # A new job's turn is its id.
        places = [*(columns[name] for name in Row._fields), columns["id"], attempt, attempt, owner, started_at]
        values.append(",".join(places))
    return sql.insert_jobs.sqlite.replace(":rows", ",".join(f"({row})" for row in values))


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
        found = _texts[(text, 0, 0)] = PARAMETER.sub("?", text)
    return found
