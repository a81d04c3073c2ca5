"""Accepting jobs: many callers' rows in one statement; unique keys, slots and the bound decided in the transaction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from ulak.errors import Refused
from ulak.spine.capacity import Capacity, line_of, live_pool
from ulak.spine.event import events_for
from ulak.spine.job import DEFERRED, READY, JobEvent, NewJob, Row
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.slots import Placement
from ulak.spine.validate import to_rows

sql = Queries("ulak.spine")

ACCEPTED = JobEvent.ACCEPTED.value

# Every new job is looked at several times: `map` and a getter by place do that without a turn of the interpreter.
_id, _kind, _key, _due_at, _state, _unique_key = (
    itemgetter(Row._fields.index(name)) for name in ("id", "kind", "key", "due_at", "state", "unique_key")
)


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing was taken, because a bound is reached; `number` places must be free there for all that was asked at once.

    The bound is the kind's on active jobs, or on live ones, or a key's share of the free places.
    """

    kind: str
    number: int = 1
    live: bool = False
    key: str | None = None

    @property
    def pool(self) -> str:
        """Return the pool of capacity that lacks some."""
        return live_pool(self.kind) if self.live else self.kind

    @property
    def line(self) -> str:
        """Return the line in which callers wait for the same."""
        return self.pool if self.key is None else line_of(self.key)

    def refusal(self, capacity: Capacity, retry_after_seconds: float | None = None) -> Refused:
        """Return the error for a caller that does not wait, or has waited long enough."""
        if self.key is not None:
            why = f"{self.key} has its share of {self.kind} jobs waiting already, and others are accepted"
        elif self.live:
            why = f"{self.kind} has reached its bound of {capacity.bound(self.pool)} unfinished jobs"
        else:
            why = f"{self.kind} has reached its bound of {capacity.bound(self.pool)} active jobs (ready or running)"
        return Refused(f"{why}; try again later", retry_after_seconds=retry_after_seconds)

    def check_size(self, capacity: Capacity) -> None:
        """Raise the error for jobs that would not fit at once into an empty bound."""
        if self.number <= capacity.bound(self.pool):
            return
        if self.key is None:
            why = f"{self.number} jobs at once never fit into the bound of {self.kind}"
        else:
            why = f"so many jobs at once never fit into the share of {self.key}, half of the bound of {self.kind}"
        raise Refused(f"{why}; send fewer at a time")


# For each row the id of the live job: the row's own, or the one that already holds its unique key.
Accepted = list[int]


def enqueue_rows(tx: Tx, rows: Sequence[Row]) -> Accepted | Full:
    """Enqueue all rows or, at a bound, none. Rooms call this inside their own units."""
    return _enqueue_batches(tx, [rows])[0]


def enqueue_owed(tx: Tx, jobs: Sequence[NewJob], traces: Sequence[str | None] = ()) -> Accepted:
    """Enqueue jobs that a room's commit owes, inside its unit; no bound refuses them. Returns ids as `enqueue_rows`.

    `traces` has one for each job, where they come from several requests or attempts.
    """
    rows = to_rows(jobs, tx.ids, tx.now)
    if any(traces):
        rows = [row._replace(trace=trace) for row, trace in zip(rows, traces, strict=True)]
    existing = _existing(tx, [rows]) if any(map(_unique_key, rows)) else {}
    ids, fresh, _ = _told_apart(rows, existing)
    if fresh:
        insert_owed(tx, fresh)
    return ids


def insert_owed(tx: Tx, rows: Sequence[Row]) -> None:
    """Insert owed work (a continuation, a redrive): no bound refuses it."""
    placed = _place(tx, rows, Placement(tx, rows))
    for kind, demand in demands(placed).items():
        tx.owe(kind, demand.active, demand.parked)
        tx.after_commit.parked.update(demand.keys)
    _insert(tx, placed)


def _enqueue_singles(tx: Tx, rows: list[Row]) -> list[int | Full]:
    if not any(map(_unique_key, rows)):
        placed = rows if _are_plain(tx, rows) else _place(tx, rows, Placement(tx, rows))
        if _admit(tx, placed) is None:
            _insert(tx, placed)  # the usual case, without a look at each
            return list(map(_id, rows))
    verdicts = _enqueue_batches(tx, [[row] for row in rows])
    return [verdict if isinstance(verdict, Full) else verdict[0] for verdict in verdicts]


def _are_plain(tx: Tx, rows: Sequence[Row]) -> bool:
    """Without keys, and due now: ready as they are."""
    return not any(map(_key, rows)) and max(map(_due_at, rows)) <= tx.now


def _enqueue_batches(tx: Tx, batches: list[Sequence[Row]]) -> list[Accepted | Full]:
    existing = _existing(tx, batches) if any(row.unique_key is not None for batch in batches for row in batch) else {}
    placement = Placement(tx, chain.from_iterable(batches))
    verdicts: list[Accepted | Full] = []
    fresh: list[Row] = []
    for batch in batches:
        ids, new, claimed = _told_apart(batch, existing)
        placed = _place(tx, new, placement)
        full = _admit(tx, placed)
        verdicts.append(ids if full is None else full)
        if full is None:
            existing.update(claimed)
            fresh.extend(placed)
        else:
            placement.undo(placed)
    if fresh:
        _insert(tx, fresh)
    return verdicts


def _place(tx: Tx, rows: Sequence[Row], placement: Placement) -> list[Row]:
    return list(rows) if not rows or _are_plain(tx, rows) else [placement.place(row) for row in rows]


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
        for identifier, _, key in tx.rows(sql.find_unique, kind=kind, keys=keys):
            found[(kind, key)] = identifier
    return found


def _told_apart(
    batch: Sequence[Row], existing: dict[tuple[str, str], int]
) -> tuple[Accepted, list[Row], dict[tuple[str, str], int]]:
    """The ids of the live jobs, the rows that are new, and the unique keys that these take."""
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
    return ids, fresh, claimed


@dataclass(slots=True)
class CapacityNeed:
    """The need of jobs of one kind: how many are active and how many parked, and of these how many by key."""

    active: int = 0
    parked: int = 0
    keys: Counter[str] = field(default_factory=Counter)


def demands(rows: Sequence[Row]) -> dict[str, CapacityNeed]:
    """By kind, all in one order: where capacity is a row, that is the order of its locks."""
    if not any(map(_state, rows)):  # all are ready
        return {kind: CapacityNeed(number) for kind, number in sorted(Counter(map(_kind, rows)).items())}
    found: defaultdict[str, CapacityNeed] = defaultdict(CapacityNeed)
    for row in rows:
        demand = found[row.kind]
        if row.state == READY:
            demand.active += 1
            continue
        demand.parked += 1
        if row.key is not None:
            demand.keys[row.key] += 1
    return dict(sorted(found.items()))


def _admit(tx: Tx, rows: Sequence[Row]) -> Full | None:
    """Take capacity for all rows, which are placed already, or for none."""
    taken: list[tuple[str, CapacityNeed]] = []
    full: Full | None = None
    for kind, demand in demands(rows).items():
        full = crowded(tx, kind, demand) or _lacking(tx, kind, demand)
        if full is not None:
            break
        taken.append((kind, demand))
    for kind, demand in taken:
        if full is None:
            tx.after_commit.parked.update(demand.keys)
        else:
            tx.owe(kind, -demand.active, -demand.parked)
    return full


def _lacking(tx: Tx, kind: str, demand: CapacityNeed) -> Full | None:
    pool = tx.admit(kind, demand.active, demand.parked)
    if pool is None:
        return None
    live = pool != kind
    return Full(kind, demand.active + demand.parked if live else demand.active, live)


def crowded(tx: Tx, kind: str, demand: CapacityNeed) -> Full | None:
    """The key of which too many are parked: as many as its kind has free, and no more.

    One key alone gets a half of the bound, eight get a ninth each, and a ninth stays free for all others.
    """
    if not demand.keys:
        return None
    free, others = tx.free_of(live_pool(kind)), demand.active + demand.parked - 1
    if others >= free:
        return None  # it is the bound itself that is reached
    parked = tx.parked_of(list(demand.keys), free + 1)
    for key, number in demand.keys.items():
        if parked[key] + number + others > free:
            return Full(kind, number + others, live=True, key=key)
    return None


def _still_full(tx: Tx, verdicts: Sequence[Full]) -> list[bool]:
    """Whether the next one would be refused as well."""
    free = {full.kind: tx.free_of(live_pool(full.kind)) for full in verdicts}
    parked: dict[str, int] = {}
    for kind, left in free.items():
        keys = [full.key for full in verdicts if full.kind == kind and full.key is not None]
        parked |= tx.parked_of(keys, left + 1) if keys else {}
    return [
        tx.free_of(full.line) <= 0 if full.key is None else parked[full.key] >= free[full.kind] for full in verdicts
    ]


def _insert(tx: Tx, rows: Sequence[Row]) -> None:
    """Rows that are placed, and for which there is capacity."""
    if tx.trace is not None:
        rows = [row if row.trace is not None else row._replace(trace=tx.trace) for row in rows]
    ready = rows if not any(map(_state, rows)) else [row for row in rows if row.state == READY]
    if len(ready) < len(rows) and (due := [row.due_at for row in rows if row.state == DEFERRED]):
        tx.wake_at(min(due))
    tx.note_ready(ready)
    tx.after_commit.events += events_for(ACCEPTED, rows, "key")
    tx.insert(rows)
    for kind, number in Counter(map(_kind, rows)).items():
        tx.count(ACCEPTED, kind, number)


ENQUEUE: Verb[Sequence[Row], Accepted | Full] = Verb(WriterQueue.ENQUEUE, _enqueue_batches, len)
ENQUEUE_ONE: Verb[Row, int | Full] = Verb(WriterQueue.ENQUEUE, _enqueue_singles)  # as most jobs come
# In the queue of enqueues: where capacity is leased, only that thread knows how much is held.
STILL_FULL: Verb[Sequence[Full], list[bool]] = Verb(
    WriterQueue.ENQUEUE, lambda tx, asked: [_still_full(tx, verdicts) for verdicts in asked]
)
