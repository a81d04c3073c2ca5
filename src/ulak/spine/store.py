"""The seam between the spine and a database: a transaction, a verb that merges like units, and the store itself."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from ulak.clock import Clock
from ulak.ids import Ids
from ulak.spine.capacity import Capacity, line_of, live_pool
from ulak.spine.job import Lease, Row
from ulak.spine.outcome import Settlement
from ulak.spine.query import Query

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
S = TypeVar("S")

# An event's word, the jobs that it is about, their common kind, and common data.
Event = tuple[str, list[int], str, Any]


_level = itemgetter(*map(Row._fields.index, ("kind", "prio")))  # called for every new job

# A commit that takes longer than this is a store that does not answer.
STALL_SECONDS = 2.0
# How long a store that answers may take for the last results, and again to close, whatever the stop's limit.
LAST_SECONDS = 5.0


class WriterQueue(IntEnum):
    """The writer's queues, in the order in which a commit serves them: a job may be accepted and claimed in one."""

    SETTLE = 0
    TIMERS = 1
    ENQUEUE = 2
    CLAIM = 3
    UNIT = 4
    BULK = 5  # alone in its commit, and in turn with all the others


@dataclass(frozen=True, eq=False)
class Verb(Generic[T, R]):
    """A merged unit of work: `run` takes the items of many callers at once and answers each in its place.

    `run` touches nothing but the transaction and may be run again, for all items or for one alone.
    `weigh` says how many rows an item has, where that is not one.
    """

    line: WriterQueue
    run: Callable[[Tx, list[T]], list[R]]
    weigh: Callable[[T], int] | None = None


class Block(NamedTuple):
    """A row of the event log: the events of one commit, encoded."""

    first: int
    number: int
    at: int
    body: bytes


@dataclass
class AfterCommit:
    """The effects that a transaction leaves for after its commit. They belong to one attempt of a batch."""

    events: list[Event] = field(default_factory=list)
    block: Block | None = None  # of `events`, where the commit itself numbers them
    ready: set[tuple[str, int]] = field(default_factory=set)
    lowest: dict[tuple[str, int], int] = field(
        default_factory=dict
    )  # of `ready`, the lowest turn; kept where a claim has a floor
    due_at: int | None = None
    behind: bool = False
    cancelled: list[int] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    free: Counter[str] = field(default_factory=Counter)  # by pool
    parked: Counter[str] = field(default_factory=Counter)  # by key

    def copy(self) -> AfterCommit:
        return AfterCommit(
            list(self.events),
            self.block,
            set(self.ready),
            dict(self.lowest),
            self.due_at,
            self.behind,
            list(self.cancelled),
            self.counts.copy(),
            self.free.copy(),
            self.parked.copy(),
        )

    def freed(self) -> list[str]:
        """The pools that have gained capacity, and the lines of keys of which fewer jobs are parked."""
        keys = [line_of(key) for key, number in self.parked.items() if number < 0]
        return [pool for pool, number in self.free.items() if number > 0] + keys


class Tx(ABC):
    """A transaction: statements by name, the instant `now`, and buffers that take effect after the commit."""

    def __init__(self, now: int, ids: Ids, capacity: Capacity) -> None:
        self.now = now
        self.ids = ids
        self.capacity = capacity
        self.after_commit = AfterCommit()
        self.trace: str | None = None  # of the jobs that are made here, where nobody says more of each

    @abstractmethod
    def rows(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement and fetch its rows. A list parameter is a set of values."""

    @abstractmethod
    def execute(self, query: Query, **parameters: Any) -> int:
        """Run a statement; return how many rows it touched."""

    @abstractmethod
    def insert_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Run a multi-row statement over all rows at once and fetch its results."""

    @abstractmethod
    def insert(self, rows: Sequence[Row]) -> None:
        """Put new jobs into the table; a claim in the same transaction may start those that are ready."""

    @abstractmethod
    def update_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> int:
        """Run an update for each row; return how many rows it changed."""

    @abstractmethod
    def rows_as(self, query: Query, shape: type[S], /, **parameters: Any) -> list[S]:
        """Run a statement and fetch its rows as values of a type with a field for each column."""

    @abstractmethod
    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        """Lease up to `limit` ready jobs of a level to an owner, by turn."""

    @abstractmethod
    def ready_levels(self, levels: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Of these (kind, priority) pairs, return those of which a job is ready: one statement for all of them."""

    @abstractmethod
    def finish(self, ended: Sequence[Settlement]) -> set[tuple[int, int]]:
        """End the jobs that this store can end without a look at each; return the (id, epoch) pairs that have left.

        The caller looks at the rest, which includes jobs that are not ours any more.
        """

    def due_floor(self) -> int:
        """Up to this instant no timer waits, as far as is known; taken before a look, which need not go below it."""
        return 0

    def note_next_due(self, due_at: int | None) -> None:
        """Note the first timer that waits, as a look has found it; None when there is none."""
        return

    @abstractmethod
    def lock_keys(self, keys: Sequence[str]) -> None:
        """Hold the given keys until the commit, where more than one writer is possible."""

    @property
    def multi_process(self) -> bool:
        """True where other processes write to the same store."""
        return False

    def rows_if_shared(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement that matters only where other processes write: it locks rows, or finds their changes."""
        return self.rows(query, **parameters) if self.multi_process else []

    def note_ready(self, rows: Sequence[Row]) -> None:
        """Announce new jobs that are ready. An id is kept only where a claim has a floor."""
        self.after_commit.ready.update(map(_level, rows))

    def row(self, query: Query, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self.rows(query, **parameters)
        return rows[0] if rows else None

    def emit(self, name: str, subject: int, kind: str, data: Any = None) -> None:
        self.after_commit.events.append((name, [subject], kind, data))

    def turns(self, number: int) -> list[int]:
        """New turns, at the end of all: for jobs that become ready or join a line, in this order."""
        return self.ids.take_many(self.now, number)

    def wake(self, kind: str, prio: int, turn: int = 0) -> None:
        """Announce that a job of this level is ready; 0 when its turn is not known."""
        level = (kind, prio)
        self.after_commit.ready.add(level)
        lowest = self.after_commit.lowest
        lowest[level] = min(lowest.get(level, turn), turn)

    def wake_at(self, due_at: int) -> None:
        known = self.after_commit.due_at
        self.after_commit.due_at = due_at if known is None else min(known, due_at)

    def count(self, word: str, kind: str, number: int = 1) -> None:
        self.after_commit.counts[(word, kind)] += number

    # Capacity. A job is active (ready, leased, suspect) or parked (deferred, behind): only its state decides.

    def admit(self, kind: str, active: int, parked: int = 0) -> str | None:
        """Take capacity for new jobs of a kind; return the pool that has too little, and then takes nothing."""
        needs = ((kind, active), (live_pool(kind), active + parked))
        # Both are asked, even if the first has too little: leased capacity that can't be used is given back.
        lacking = [pool for pool, number in needs if number and not self.has_free(pool, number)]
        if lacking:
            return lacking[0]
        self.owe(kind, active, parked)
        return None

    def owe(self, kind: str, active: int, parked: int = 0) -> None:
        """Take capacity for work that may not be refused; it may be negative afterwards."""
        self.after_commit.free[kind] -= active
        self.after_commit.free[live_pool(kind)] -= active + parked

    def leave(self, kind: str, number: int) -> None:
        """Give back the capacity of active jobs that have left; a parked job is unparked first."""
        self.after_commit.free[kind] += number
        self.after_commit.free[live_pool(kind)] += number

    def park(self, kind: str, key: str | None) -> None:
        """An active job is put off."""
        self.after_commit.free[kind] += 1
        if key is not None:
            self.after_commit.parked[key] += 1

    def unpark(self, kind: str, key: str | None) -> None:
        """A parked job becomes active. It is owed, so nobody asks whether that fits."""
        self.after_commit.free[kind] -= 1
        if key is not None:
            self.after_commit.parked[key] -= 1

    def has_free(self, pool: str, number: int) -> bool:
        return self.free_of(pool) >= number

    def free_of(self, pool: str) -> int:
        """Return how much is free of a pool, this transaction's changes included."""
        return self.capacity.free(pool) + self.after_commit.free[pool]

    def parked_of(self, keys: Sequence[str], enough: int) -> dict[str, int]:
        """How many jobs of each key are parked, this transaction's included; above `enough` it need not be exact."""
        own, known = self.after_commit.parked, self.capacity.parked
        return {key: known.get(key, 0) + own[key] for key in keys}


class CommitListener(Protocol):
    """A listener that is called on the event loop with the changes of a commit."""

    def committed(self, buffers: AfterCommit, freed: list[str]) -> None: ...

    def lost(self, reason: Exception) -> None:
        """The store can't go on; the process should stop and start again."""


class Store(Protocol):
    """A database with the spine's schema in it."""

    name: str
    clock: Clock
    ids: Ids
    capacity: Capacity
    owner: int
    multi_process: bool
    slice_seconds: float  # of the writer's time, for one slice of a bulk load: jobs wait for it

    async def open(self, listener: CommitListener) -> None: ...

    async def close(self, seconds: float = LAST_SECONDS) -> bool:
        """Serve what waits and end, within the time; return False if something is stuck in the database.

        A caller without an answer by then gets Unavailable; if its unit was under way, the outcome is "unknown".
        """

    def stalled_seconds(self) -> float:
        """Return how long a commit has been under way without an answer; 0 if none is."""

    def submit(self, verb: Verb[T, R], item: T) -> Awaitable[R]:
        """Queue an item for its verb's line; await the result, which comes after the commit."""

    def piggyback(self, verb: Verb[T, R], item: T) -> asyncio.Future[R | None]:
        """Queue an item that triggers no commit itself. It joins the writer's next commit that makes jobs ready."""

    def withdraw_piggyback(self) -> None:
        """Withdraw claims that wait for a commit: they get None. One under way gets its result."""

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a plain function in a transaction of Ulak's own: atomic, database only, re-runnable."""

    async def read(self, work: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that only reads, on a connection apart from the writers and with a deadline."""

    async def enqueue_in(self, connection: Any, rows: Sequence[Row]) -> list[int]:
        """Enqueue in a transaction that the caller has open on the same database."""

    async def backup(self, path: str) -> None:
        """Write a consistent copy while work goes on."""

    async def maintain(self) -> None:
        """Upkeep, about twice a second: free space, credits, wake-ups that are owed."""

    async def warnings(self) -> list[str]:
        """Why the store may keep less than it promises; empty when it does not."""

    def gauges(self) -> dict[str, float]:
        """Gauges of the store itself, for /metrics."""


def answers(store: Store) -> bool:
    return store.stalled_seconds() < STALL_SECONDS


def closing_seconds(store: Store, left: float) -> float:
    """Return how long the end of a stop may take: the rest of its limit, or a little for a store that answers."""
    return max(left, LAST_SECONDS if answers(store) else 0.0)
