"""Runs the real spine for a machine that is not async: one store and one loop for all examples, emptied in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

from tests.contract.bench import Ears
from ulak.clock import ManualClock
from ulak.spine.event import EventRecord, last_seq, read_events
from ulak.spine.query import Queries, Query
from ulak.spine.store import Store, Tx, Verb
from ulak.spine.units.claim import ClaimVerbs
from ulak.stores.postgres.store import PostgresStore
from ulak.stores.sqlite.store import SqliteStore

T = TypeVar("T")
R = TypeVar("R")

sql = Queries("ulak.spine")

ACTIVE = {"mail": 8, "sms": 5, "call": 5}
LIVE = {"mail": 14, "sms": 9, "call": 9}


def query(text: str) -> Query:
    return Query("test", text, text, ())


_JOBS = query(
    "SELECT id, kind, key, slots, slot, prio, due_at, state, attempt, crashes, epoch, owner, expires_at, cancelled_at, "
    "unique_key, continuation, hold, payload, turn FROM job ORDER BY id"
)
_PAST = query("SELECT id, kind, outcome, attempt, crashes, settled_at, payload FROM past ORDER BY id")
_DEAD = query("SELECT id, kind, error_class, attempt, crashes, epoch, died_at, payload FROM dead ORDER BY id")
_EMPTY = [query(f"DELETE FROM {table}") for table in ("job", "past", "dead")]
_FREE = query("SELECT pool, free FROM capacity")


class Stored(NamedTuple):
    """A live job's row."""

    id: int
    kind: str
    key: str | None
    slots: int
    slot: int | None
    prio: int
    due_at: int
    state: int
    attempt: int
    crashes: int
    epoch: int
    owner: int | None
    expires_at: int | None
    cancelled_at: int | None
    unique_key: str | None
    continuation: str | None
    hold: int
    payload: bytes
    turn: int


class Snapshot(NamedTuple):
    live: list[Stored]
    past: list[tuple[Any, ...]]
    dead: list[tuple[Any, ...]]
    tally: dict[tuple[str, str], int]


def _snapshot(tx: Tx, tag: str) -> Snapshot:
    tally = {(word, kind): int(number) for word, kind, number in tx.rows(sql.read_tally) if number and tag in kind}
    return Snapshot(list(map(Stored._make, tx.rows(_JOBS))), tx.rows(_PAST), tx.rows(_DEAD), tally)


def _empty(tx: Tx) -> None:
    for statement in _EMPTY:
        tx.execute(statement)


class Driver:
    """Kinds carry the example's tag, so counts and bounds of earlier examples don't matter."""

    def __init__(self, loop: asyncio.AbstractEventLoop, store: Store, ears: Ears, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self._loop = loop
        self.ears = ears
        self._examples = count(1)

    def begin(self) -> str:
        """Empty the store; answers the tag of the next example. Each begins at a full hour: cron looks at the clock."""
        self.write(_empty)
        self.store.capacity.parked.clear()
        self.clock.advance(3600 - self.clock.now() // 1000 % 3600)
        self.claimer = ClaimVerbs()
        return f".{next(self._examples)}."

    def run(self, work: Awaitable[R]) -> R:
        async def wait() -> R:
            return await work

        return self._loop.run_until_complete(wait())

    def submit(self, verb: Verb[T, R], item: T) -> R:
        return self.run(self.store.submit(verb, item))

    def submit_at_once(self, verb: Verb[T, R], items: Sequence[T]) -> list[R]:
        async def wait() -> list[R]:
            return await asyncio.gather(*(self.store.submit(verb, item) for item in items))

        return self.run(wait())

    def submit_in_turn(self, work: Sequence[tuple[Verb[Any, Any], Any]]) -> list[Any]:
        """In one commit where one writer does everything; one after another where several do."""
        if self.store.multi_process:
            return [self.submit(verb, item) for verb, item in work]

        async def wait() -> list[Any]:
            return await asyncio.gather(*(self.store.submit(verb, item) for verb, item in work))

        return self.run(wait())

    def write(self, unit: Any, *args: Any) -> Any:
        return self.run(self.store.write(unit, *args))

    def snapshot(self, tag: str) -> Snapshot:
        return self.run(self.store.read(_snapshot, tag))

    def free(self, pool: str) -> int:
        """What may still be accepted: what the capacity holds, and on PostgreSQL also what lies in the database."""
        if not self.store.multi_process:
            return self.store.capacity.free(pool)
        free = dict(self.run(self.store.read(lambda tx: tx.rows(_FREE))))
        return int(free.get(pool, self.store.capacity.bound(pool))) + self.store.capacity.available.get(pool, 0)

    def last_seq(self) -> int:
        return self.run(self.store.read(last_seq))

    def events(self, after: int, number: int) -> list[EventRecord]:
        """So many events above the cursor; a shared store numbers them a little after the commit."""
        return self.run(self._events(after, number))

    async def _events(self, after: int, number: int) -> list[EventRecord]:
        found: list[EventRecord] = []
        async with asyncio.timeout(20):
            while len(found) < number:
                self.ears._changed.clear()
                more = await self.store.read(read_events, found[-1].seq if found else after, 10_000)
                found += more
                if not more:
                    await self.ears._changed.wait()
        return found


def active(kind: str) -> int:
    return ACTIVE.get(kind.partition(".")[0], 1000)


def live(kind: str) -> int:
    return LIVE.get(kind.partition(".")[0], 1000)


@contextlib.contextmanager
def opened(address: str) -> Iterator[Driver]:
    clock, ears = ManualClock(), Ears()
    with asyncio.Runner() as runner:
        store: Store
        if address == "memory:":
            store = SqliteStore(None, clock, active, live=live)
        else:
            store = PostgresStore(address, clock, active, live=live)
            store._credits.lines.ask_seconds = 0  # so that a share is exact, and the model can tell it
        loop = runner.get_loop()
        loop.run_until_complete(store.open(ears))
        try:
            yield Driver(loop, store, ears, clock)
        finally:
            loop.run_until_complete(store.close())
