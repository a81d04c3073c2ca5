"""SQLite's transaction: statements of many rows, and new jobs that wait for a claim of the same commit."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from ulak import codec
from ulak.ids import Ids
from ulak.spine.job import LEASED, READY, Lease, Row
from ulak.spine.query import Queries, Query
from ulak.spine.store import Ledger, N, Tx

sql = Queries("ulak.spine")

# One statement of many rows gives the interpreter lock away once, not once a row. Usual jobs have a statement for every
# number of rows, because they are most of the work; for the rest there are few, since each has to be compiled.
MOST_ROWS = 64
ROWS_PER_STATEMENT = (64, 16, 4, 1)
_SHARED_PARAMETERS = 7
_USUAL_PARAMETERS = 3
# attempt and epoch, owner, started_at
_NOT_STARTED = (0, None, None)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")


class SqliteTx(Tx):
    def __init__(self, connection: sqlite3.Connection, now: int, ids: Ids, ledger: Ledger) -> None:
        super().__init__(now, ids, ledger)
        self._connection = connection
        self._fresh: list[Row] = []

    def all(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        self.flush()
        return self._connection.execute(query.sqlite, _bound(parameters)).fetchall()

    def run(self, query: Query, **parameters: Any) -> int:
        self.flush()
        return self._connection.execute(query.sqlite, _bound(parameters)).rowcount

    def many(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self.flush()
        found: list[tuple[Any, ...]] = []
        start = 0
        for size in ROWS_PER_STATEMENT:
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                found += self._connection.execute(_expanded(query.sqlite, size, len(rows[0])), values).fetchall()
                start += size
        return found

    def insert(self, rows: Sequence[Row]) -> None:
        """They wait until this transaction does something else: a claim that comes first may start them as they are."""
        self._fresh += rows

    def flush(self) -> None:
        """Store the new jobs that no claim has taken."""
        if self._fresh:
            rows, self._fresh = self._fresh, []
            self._store(rows, None, _NOT_STARTED)

    def forget(self) -> None:
        """What was new is undone."""
        self._fresh = []

    def _store(self, rows: Sequence[Row], state: int | None, started: tuple[Any, ...]) -> None:
        """Most jobs differ only by id, time and payload: what they have in common is bound once for all."""
        usual: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
        others = []
        for row in rows:
            if row.key is None and row.is_usual:
                usual[row.common] += (row.id, row.due_at, row.payload)
            else:
                others.append((*(row if state is None else row._replace(state=state)), started[0], *started))
        for (kind, prio, slots, stored), values in usual.items():
            self._store_usual((kind, prio, slots, stored if state is None else state, *started), values)
        self.many(sql.insert_jobs, others)

    def _store_usual(self, shared: tuple[Any, ...], values: list[Any]) -> None:
        whole = MOST_ROWS * _USUAL_PARAMETERS
        for start in range(0, len(values), whole):
            part = values[start : start + whole]
            self._connection.execute(_insert_usual(len(part) // _USUAL_PARAMETERS), [*shared, *part])

    def records(self, query: Query, shape: type[N], /, **parameters: Any) -> list[N]:
        self.flush()
        return self._records(query, shape, parameters)

    def _records(self, query: Query, shape: type[N], parameters: dict[str, Any]) -> list[N]:
        """The statement packs its rows into one JSON text: fetched one by one, each would give the lock away."""
        (packed,) = self._connection.execute(query.sqlite, _bound(parameters)).fetchone()
        found: list[N] = _decoder_of(shape).decode(packed)
        return found

    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        leases = self._claim_stored(owner, kind, prio, limit)
        if self._fresh and len(leases) < limit:
            leases += self._start(owner, kind, prio, limit - len(leases))
        return leases

    def _claim_stored(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        (ids,) = self._connection.execute(sql.find_ready.sqlite, {"kind": kind, "prio": prio, "n": limit}).fetchone()
        if ids == "[]":
            return []
        self._connection.execute(sql.lease_jobs.sqlite, {"owner": owner, "now": self.now, "ids": ids})
        return sorted(self._records(sql.read_claimed, Lease, {"ids": ids}))

    def _start(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        """New jobs that can start at once are stored as started: accepted and claimed by one insert."""
        taken: list[Row] = []
        left: list[Row] = []
        for row in self._fresh:
            fits = row.state == READY and row.prio == prio and row.kind == kind and len(taken) < limit
            (taken if fits else left).append(row)
        self._fresh = []
        self._store(taken, LEASED, (1, owner, self.now))
        self._fresh = left
        return [
            Lease(row.id, 1, kind, row.key, prio, 1, 0, row.accepted_at, row.due_at, row.expires_at, row.payload)
            for row in taken
        ]

    def each(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> None:
        self.flush()
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
    """The statement with what these jobs share bound once, and three parameters a row."""
    first = range(_SHARED_PARAMETERS + 1, _SHARED_PARAMETERS + 1 + rows * _USUAL_PARAMETERS, _USUAL_PARAMETERS)
    values = [f"(?{n},?1,NULL,?3,NULL,?2,?{n + 1},?4,?{n + 1},NULL,NULL,NULL,0,?{n + 2},?5,?5,?6,?7)" for n in first]
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
