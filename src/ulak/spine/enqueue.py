"""Accepting jobs: many callers' rows in one statement; unique keys, slots and the bound decided in the transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from ulak.spine.event import told
from ulak.spine.job import BEHIND, DEFERRED, READY, Row, Word
from ulak.spine.query import Queries
from ulak.spine.slots import occupied_slots, take_slot
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

ACCEPTED = Word.ACCEPTED.value

# Every new job is looked at several times: `map` and a getter by place do that without a turn of the interpreter.
_id, _kind, _key, _due_at, _state, _unique_key = (
    itemgetter(Row._fields.index(name)) for name in ("id", "kind", "key", "due_at", "state", "unique_key")
)
_level = itemgetter(*map(Row._fields.index, ("kind", "prio")))


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing was taken: the bound of this kind is reached; `number` is what was asked of it at once."""

    kind: str
    number: int = 1


# For each row the id of the live job: the row's own, or the one that already holds its unique key.
Accepted = list[int]


def enqueue_rows(tx: Tx, rows: Sequence[Row]) -> Accepted | Full:
    """Enqueue all rows or, at a bound, none. Rooms call this inside their own units."""
    return _enqueue_batches(tx, [rows])[0]


def enqueue_owed(tx: Tx, rows: list[Row]) -> None:
    """Enqueue what is owed already (a continuation, a redrive): the bound does not hold it back."""
    for row in rows:
        tx.leave(row.kind, -1)
    _insert(tx, rows)


def _enqueue_singles(tx: Tx, rows: list[Row]) -> list[int | Full]:
    if not any(map(_unique_key, rows)) and _admit_all(tx, Counter(map(_kind, rows))) is None:
        _insert(tx, rows)  # the usual case, without a look at each
        return list(map(_id, rows))
    verdicts = _enqueue_batches(tx, [[row] for row in rows])
    return [verdict if isinstance(verdict, Full) else verdict[0] for verdict in verdicts]


def _enqueue_batches(tx: Tx, batches: list[Sequence[Row]]) -> list[Accepted | Full]:
    existing = _existing(tx, batches) if any(row.unique_key is not None for batch in batches for row in batch) else {}
    verdicts: list[Accepted | Full] = []
    fresh: list[Row] = []
    for batch in batches:
        verdict, taken = _decide(tx, batch, existing)
        verdicts.append(verdict)
        fresh.extend(taken)
    if fresh:
        _insert(tx, fresh)
    return verdicts


def _existing(tx: Tx, batches: list[Sequence[Row]]) -> dict[tuple[str, str], int]:
    """Live jobs that hold a unique key which some row asks for."""
    wanted: dict[str, list[str]] = {}
    for batch in batches:
        for row in batch:
            if row.unique_key is not None:
                wanted.setdefault(row.kind, []).append(row.unique_key)
    found: dict[tuple[str, str], int] = {}
    tx.lock_keys(sorted({f"unique:{kind}:{key}" for kind, keys in wanted.items() for key in keys}))
    for kind, keys in sorted(wanted.items()):
        for identifier, _, key in tx.all(sql.find_unique, kind=kind, keys=keys):
            found[(kind, key)] = identifier
    return found


def _decide(tx: Tx, batch: Sequence[Row], existing: dict[tuple[str, str], int]) -> tuple[Accepted | Full, list[Row]]:
    if len(batch) == 1 and batch[0].unique_key is None:
        row = batch[0]
        return ([row.id], [row]) if tx.admit(row.kind, 1) else (Full(row.kind), [])
    return _decide_many(tx, batch, existing)


def _decide_many(
    tx: Tx, batch: Sequence[Row], existing: dict[tuple[str, str], int]
) -> tuple[Accepted | Full, list[Row]]:
    ids: Accepted = []
    fresh: list[Row] = []
    claimed: dict[tuple[str, str], int] = {}
    for row in batch:
        name = None if row.unique_key is None else (row.kind, row.unique_key)
        holder = None if name is None else existing.get(name, claimed.get(name))
        ids.append(row.id if holder is None else holder)
        if holder is None:
            fresh.append(row)
            if name is not None:
                claimed[name] = row.id
    demand = Counter(row.kind for row in fresh)
    crowded = _admit_all(tx, demand)
    if crowded is not None:
        pool_of = tx.ledger.pool_of
        return Full(crowded, sum(demand[one] for one in demand if pool_of(one) == pool_of(crowded))), []
    existing.update(claimed)
    return ids, fresh


def _admit_all(tx: Tx, demand: Counter[str]) -> str | None:
    """Take room for all kinds or for none; answers the kind that has too little."""
    taken: list[tuple[str, int]] = []
    for kind in sorted(demand, key=tx.ledger.pool_of):  # where room is a row in the database, all lock in one order
        number = demand[kind]
        if not tx.admit(kind, number):
            for other, given in taken:
                tx.leave(other, given)
            return kind
        taken.append((kind, number))
    return None


def _insert(tx: Tx, rows: list[Row]) -> None:
    if any(map(_key, rows)):
        rows = _with_slots(tx, rows)
    now = tx.now
    if max(map(_due_at, rows)) > now:
        rows = [row._replace(state=DEFERRED) if row.due_at > now else row for row in rows]
        tx.wake_at(min(row.due_at for row in rows if row.due_at > now))
    ready = rows if not any(map(_state, rows)) else [row for row in rows if row.state == READY]
    tx.buffers.ready.update(map(_level, ready))
    if tx.shared:
        for row in ready:
            tx.wake(row.kind, row.prio, row.id)
    tx.buffers.events += told(ACCEPTED, rows, "key")
    tx.insert(rows)
    for kind, number in Counter(map(_kind, rows)).items():
        tx.count(ACCEPTED, kind, number)


def _with_slots(tx: Tx, rows: list[Row]) -> list[Row]:
    """Keyed jobs that are due get a slot or stand behind; deferred ones join the line when they become due."""
    joining = [row.key for row in rows if row.key is not None and row.due_at <= tx.now]
    if not joining:
        return rows
    taken = occupied_slots(tx, joining)
    # Where callers enqueue in their own transactions, a job may stand behind a slot that is still to be handed on.
    busy = {found[0] for found in tx.all(sql.find_behind, keys=sorted(set(joining)))} if tx.shared else set()
    return [_with_slot(row, taken, busy, tx.now) for row in rows]


def _with_slot(row: Row, taken: dict[str, set[int]], busy: set[str], now: int) -> Row:
    if row.key is None or row.due_at > now:
        return row
    slot = None if row.key in busy else take_slot(taken, row.key, row.slots)
    return row._replace(slot=slot, state=BEHIND if slot is None else READY)


ENQUEUE: Verb[Sequence[Row], Accepted | Full] = Verb(Line.ENQUEUE, _enqueue_batches, len)
ENQUEUE_ONE: Verb[Row, int | Full] = Verb(Line.ENQUEUE, _enqueue_singles)  # as most jobs come
