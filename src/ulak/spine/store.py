"""The seam between the spine and a database: a transaction, a verb that merges like units, and the store itself."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from ulak.clock import Clock
from ulak.ids import Ids
from ulak.spine.job import Lease, Row
from ulak.spine.query import Query

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
S = TypeVar("S")

# A word, the jobs of which it is said, and what they have in common: their kind and what else there is to say.
Event = tuple[str, list[int], str, Any]


# A commit that takes longer than this is a store that does not answer.
STALL_SECONDS = 2.0
# So long a store that answers may take at the end for the last results, and again to close, whatever the stop's limit.
LAST_SECONDS = 5.0


class Line(IntEnum):
    """The writer's lines, in the order in which a commit serves them: what is accepted may be claimed at once."""

    SETTLE = 0
    TIMERS = 1
    ENQUEUE = 2
    CLAIM = 3
    UNIT = 4


@dataclass(frozen=True, eq=False)
class Verb(Generic[T, R]):
    """A merged unit of work: `run` takes the items of many callers at once and answers each in its place.

    `run` touches nothing but the transaction and may be run again, for all items or for one alone.
    `weigh` says how many rows an item has, where that is not one.
    """

    line: Line
    run: Callable[[Tx, list[T]], list[R]]
    weigh: Callable[[T], int] | None = None


@dataclass
class Buffers:
    """What a transaction leaves to be done after its commit. It belongs to one attempt of a batch."""

    events: list[Event] = field(default_factory=list)
    ready: set[tuple[str, int]] = field(default_factory=set)
    lowest: dict[tuple[str, int], int] = field(
        default_factory=dict
    )  # of `ready`, the lowest id; kept where a claim has a floor
    due_at: int | None = None
    behind: bool = False
    cancelled: list[int] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    room: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Buffers:
        return Buffers(
            list(self.events),
            set(self.ready),
            dict(self.lowest),
            self.due_at,
            self.behind,
            list(self.cancelled),
            self.counts.copy(),
            self.room.copy(),
        )


class Ledger:
    """How many more jobs may be accepted, by pool: a kind, or several that share a bound. Only commits change it."""

    def __init__(self, capacity: Callable[[str], int], pool_of: Callable[[str], str] = str) -> None:
        self.capacity = capacity
        self.pool_of = pool_of
        self.available: dict[str, int] = {}
        self.closed_because: str | None = None

    def room(self, pool: str) -> int:
        found = self.available.get(pool)
        return self.available.setdefault(pool, self.capacity(pool)) if found is None else found

    def load(self, live: Iterable[tuple[str, int]]) -> None:
        """Start from what the store holds: (kind, live jobs)."""
        for kind, number in live:
            pool = self.pool_of(kind)
            self.available[pool] = self.room(pool) - number

    def apply(self, change: Counter[str]) -> list[str]:
        """Apply a commit's changes; answers the pools that have gained room."""
        for pool, number in change.items():
            self.available[pool] = self.room(pool) + number
        return [pool for pool, number in change.items() if number > 0]


class Tx(ABC):
    """A transaction: statements by name, the instant `now`, and buffers that take effect after the commit."""

    def __init__(self, now: int, ids: Ids, ledger: Ledger) -> None:
        self.now = now
        self.ids = ids
        self.ledger = ledger
        self.buffers = Buffers()

    @abstractmethod
    def all(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement and fetch its rows. A list parameter is a set of values."""

    @abstractmethod
    def run(self, query: Query, **parameters: Any) -> int:
        """Run a statement; answers how many rows it touched."""

    @abstractmethod
    def many(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Run a multi-row statement over all rows at once and fetch what it returns."""

    @abstractmethod
    def insert(self, rows: Sequence[Row]) -> None:
        """Put new jobs into the table; a claim in the same transaction may start those that are ready."""

    @abstractmethod
    def each(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run an update for each row."""

    @abstractmethod
    def records(self, query: Query, shape: type[S], /, **parameters: Any) -> list[S]:
        """Run a statement and fetch its rows as values of a type with a field for each column."""

    @abstractmethod
    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        """Lease up to so many ready jobs of a level to an owner, oldest first."""

    def due_floor(self) -> int:
        """Up to this instant no timer waits, as far as is known; taken before a look, which need not go below it."""
        return 0

    def note_next_due(self, due_at: int | None) -> None:
        """What a look has found to be the first timer that waits; None when there is none."""
        return

    @abstractmethod
    def lock_keys(self, keys: Sequence[str]) -> None:
        """Hold the given keys until the commit, where more than one writer is possible."""

    @property
    def shared(self) -> bool:
        """True where other processes write to the same store."""
        return False

    def one(self, query: Query, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self.all(query, **parameters)
        return rows[0] if rows else None

    def emit(self, name: str, subject: int, kind: str, data: Any = None) -> None:
        self.buffers.events.append((name, [subject], kind, data))

    def wake(self, kind: str, prio: int, identifier: int = 0) -> None:
        """Announce that a job of this level is ready; 0 when its id is not known."""
        level = (kind, prio)
        self.buffers.ready.add(level)
        lowest = self.buffers.lowest
        lowest[level] = min(lowest.get(level, identifier), identifier)

    def wake_at(self, due_at: int) -> None:
        known = self.buffers.due_at
        self.buffers.due_at = due_at if known is None else min(known, due_at)

    def count(self, word: str, kind: str, number: int = 1) -> None:
        self.buffers.counts[(word, kind)] += number

    def admit(self, kind: str, number: int) -> bool:
        """Take room for new jobs of a kind; False when the bound is reached."""
        pool = self.ledger.pool_of(kind)
        if self.ledger.room(pool) + self.buffers.room[pool] < number:
            return False
        self.buffers.room[pool] -= number
        return True

    def leave(self, kind: str, number: int) -> None:
        self.buffers.room[self.ledger.pool_of(kind)] += number


class Listener(Protocol):
    """Who is told, on the event loop, what a commit has changed."""

    def committed(self, buffers: Buffers, room_for: list[str]) -> None: ...

    def lost(self, reason: Exception) -> None:
        """The store can't go on; the process should stop and start again."""


class Store(Protocol):
    """A database with the spine's schema in it."""

    name: str
    clock: Clock
    ids: Ids
    ledger: Ledger
    owner: int
    shared: bool

    async def open(self, listener: Listener) -> None: ...

    async def close(self, seconds: float = LAST_SECONDS) -> bool:
        """Serve what waits and end, within the time; False when something is stuck in the database and stays behind.

        Whoever has no answer by then gets Unavailable, with the outcome "unknown" if it was under way.
        """

    def silent_seconds(self) -> float:
        """For how long a commit has been under way without an answer; 0 when none is."""

    def submit(self, verb: Verb[T, R], item: T) -> Awaitable[R]:
        """Queue an item for its verb's line; what it answers is to be awaited and comes after the commit."""

    def ride(self, verb: Verb[T, R], item: T) -> asyncio.Future[R | None]:
        """Leave an item that causes no commit: the first one beside its line that makes jobs ready takes it along."""

    def alight(self) -> None:
        """Take back what waits for a ride, which is then answered with None; what is on its way gets its answer."""

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a plain function in a transaction of Ulak's own: atomic, database only, re-runnable."""

    async def read(self, work: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that only reads, beside the writers and with a deadline."""

    async def enqueue_in(self, connection: Any, rows: Sequence[Row]) -> list[int]:
        """Enqueue in a transaction that the caller has open on the same database."""

    async def backup(self, path: str) -> None:
        """Write a consistent copy while work goes on."""

    async def tend(self) -> None:
        """Upkeep, about twice a second: free space, credits, wake-ups that are owed."""

    async def warnings(self) -> list[str]:
        """Why the store may keep less than it promises; empty when it does not."""

    def facts(self) -> dict[str, float]:
        """Gauges of the store itself, for /metrics."""


def answers(store: Store) -> bool:
    return store.silent_seconds() < STALL_SECONDS


def closing_seconds(store: Store, left: float) -> float:
    """What the end of a stop may take: what is left of its limit; if that is little, some for a store that answers."""
    return max(left, LAST_SECONDS if answers(store) else 0.0)
