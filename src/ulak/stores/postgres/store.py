"""PostgreSQL: many processes, one database. Two connections write merged statements; readers have their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from ulak.clock import Clock
from ulak.errors import Misconfigured, Unavailable
from ulak.log import get_logger
from ulak.spine.capacity import Capacity
from ulak.spine.job import Row
from ulak.spine.query import Queries
from ulak.spine.store import LAST_SECONDS, AfterCommit, CommitListener, Tx, Verb, WriterQueue
from ulak.stores.migrate import ONLY_SPINE, Lines, prepare_postgres
from ulak.stores.postgres.address import without_secrets
from ulak.stores.postgres.check import check_place
from ulak.stores.postgres.clock import DatabaseClock
from ulak.stores.postgres.connections import PostgresConnections
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.floors import TIMERS, Floors
from ulak.stores.postgres.lending import Lending, lend
from ulak.stores.postgres.notices import Notice
from ulak.stores.postgres.notifier import Notifier
from ulak.stores.postgres.owner import Owner
from ulak.stores.postgres.reader import Reader
from ulak.stores.postgres.recount import recount
from ulak.stores.postgres.relay import Relay
from ulak.stores.postgres.session import PostgresSession, in_our_words
from ulak.stores.postgres.upkeep import give_back, look_at_owners, pay_debts, say_goodbye
from ulak.stores.writer.writer import RUN_UNIT, Writer

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

log = get_logger("ulak.postgres")
sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

# Only one thread may admit new work: capacity is spent in memory.
_WORKING = (WriterQueue.SETTLE, WriterQueue.TIMERS, WriterQueue.CLAIM)
_ADMITTING = (WriterQueue.ENQUEUE, WriterQueue.UNIT)

FLOOR_SECONDS = 1.0
OWNER_SECONDS = 5.0


class PostgresStore:
    multi_process = True
    slice_seconds = 0.005  # a load has a connection of its own

    def __init__(
        self,
        uri: str,
        clock: Clock,
        capacity: Callable[[str], int],
        lease_seconds: float = 15.0,
        live: Callable[[str], int] | None = None,
        *,
        lines: Lines = ONLY_SPINE,
    ) -> None:
        self._lines = lines
        self._connections = PostgresConnections(uri)
        self.name = without_secrets(uri)
        self._clock = DatabaseClock(clock)
        self.clock: Clock = self._clock
        self._credits = Credits(capacity, live, self._clock)
        self.capacity: Capacity = self._credits
        self._floors = Floors()
        self._owner = Owner(lease_seconds, by_hand=self._clock.by_hand)
        self._lending = Lending(self._credits, self._owner, lambda rows, wanted: self.write(lend, rows, wanted))
        self.ids = self._owner.ids
        self.owner = 0
        self._closing = threading.Event()
        self._reader = Reader(self._connections, self._clock, self._credits, self._owner)
        self._notifier = Notifier(self._connections, self._clock, self._heard)
        self._relay = Relay(self._connections, self._clock, self._moved)
        self._writers: dict[WriterQueue, Writer] = {}
        self._bulk = asyncio.Lock()
        self._listener: CommitListener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._floors_reset_at = self._owner_checked_at = 0.0

    # Life

    async def open(self, listener: CommitListener) -> None:
        self._listener = listener
        self._loop = loop = asyncio.get_running_loop()
        with in_our_words():
            sessions = await asyncio.to_thread(self._prepare)
        self._take_name()
        for session, name, lines in zip(sessions, ("ulak-work", "ulak-admit"), (_WORKING, _ADMITTING), strict=True):
            writer = Writer(name, session, lines, loop, self._committed, listener.lost)
            self._writers |= dict.fromkeys(lines, writer)
            writer.start()
        self._notifier.start()
        self._relay.start()
        try:
            await self._look_around()
        except BaseException:
            await self.close()
            raise

    async def _look_around(self) -> None:
        for warning in await self.warnings():
            log.warning("not_durable", note=warning)
        if len(await self.read(lambda tx: tx.rows(spine_sql.list_owners))) == 1:
            await self.recount()

    def _prepare(self) -> list[PostgresSession]:
        sessions: list[PostgresSession] = []
        try:
            check_place(self._connections.connect, self._lines)
            with self._connections.connect() as connection:
                self._clock.ask(connection)  # before it is used: it does not go back
                prepare_postgres(connection, self._lines, self.clock.now())
            sessions += [self._session(admits=False), self._session(admits=True)]
            self._join()
        except BaseException:
            for session in sessions:
                session.close()
            raise
        return sessions

    def _session(self, *, admits: bool) -> PostgresSession:
        return PostgresSession(
            self._connections, self._clock, self._credits, self._floors, self._owner, self._closing, admits=admits
        )

    def _join(self) -> None:
        """Take a place among those that share the database."""
        with self._connections.connect() as connection:
            self._owner.register(connection.cursor(binary=True), self.clock.now())

    def _take_name(self) -> None:
        """On the event loop, so that nobody there sees the one without the other."""
        self.ids, self.owner = self._owner.ids, self._owner.id
        self.withdraw_piggyback()  # a claim that waits is in the old name

    async def close(self, seconds: float = LAST_SECONDS) -> bool:
        self._closing.set()
        try:
            async with asyncio.timeout(seconds):
                await self._close_in_order(seconds)
                return True
        except TimeoutError:
            self._hang_up()
            await self._reader.close(0)
            return False
        finally:
            self._writers = {}

    async def _close_in_order(self, seconds: float) -> None:
        if self._writers:
            if WriterQueue.BULK in self._writers:
                await self._writers[WriterQueue.BULK].close()
            await self._writers[WriterQueue.CLAIM].close()
            await self._writers[WriterQueue.UNIT].close(
                last=partial(say_goodbye, owner=self.owner, held=self._credits.available)
            )
            await asyncio.to_thread(self._end_threads, seconds)
        await self._reader.close(seconds)

    def _hang_up(self) -> None:
        """Stop waiting for this server; whether it still carries out the last request is unknown."""
        self._connections.cut()
        for writer in set(self._writers.values()):
            writer.give_up()

    def _end_threads(self, seconds: float) -> None:
        self._relay.close(seconds)
        self._notifier.close(seconds)

    # Work

    def submit(self, verb: Verb[T, R], item: T) -> Awaitable[R]:
        writer = self._writers.get(verb.line)
        if writer is None and verb.line is WriterQueue.BULK:
            return self._submit_bulk(verb, item)
        if writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return writer.submit(verb, item)

    async def _submit_bulk(self, verb: Verb[T, R], item: T) -> R:
        """Loads have a connection of their own, opened with the first of them: most processes never need it."""
        async with self._bulk:
            if verb.line not in self._writers:
                await self._open_bulk()
        answer: R = await self._writers[verb.line].submit(verb, item)
        return answer

    async def _open_bulk(self) -> None:
        if not self._writers or self._loop is None or self._listener is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        with in_our_words():
            session = await asyncio.to_thread(self._session, admits=False)
        if not self._writers:  # closed meanwhile
            session.close()
            raise Unavailable("the store is closed")
        writer = Writer("ulak-bulk", session, (WriterQueue.BULK,), self._loop, self._committed, self._listener.lost)
        self._writers[WriterQueue.BULK] = writer
        writer.start()

    def piggyback(self, verb: Verb[T, R], item: T) -> asyncio.Future[R | None]:
        writer = self._writers.get(verb.line)
        if writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return writer.piggyback(verb, item)

    def withdraw_piggyback(self) -> None:
        for writer in set(self._writers.values()):
            writer.withdraw_piggyback()

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await self.submit(RUN_UNIT, lambda tx: unit(tx, *args, **kwargs))
        return answer

    async def read(self, work: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._reader.read(lambda tx: work(tx, *args, **kwargs))

    async def enqueue_in(self, connection: Any, rows: Sequence[Row]) -> list[int]:
        return await self._lending.enqueue(connection, rows, self.clock.now())

    async def backup(self, path: str) -> None:
        raise Misconfigured(
            f"PostgreSQL has its own tool for this; run: pg_dump --format=custom --file={path} '{self.name}'"
        )

    # Notices to and from other processes

    def _committed(self, buffers: AfterCommit) -> None:
        """On the event loop, after a commit. The capacity and the floors have followed it already."""
        if buffers.events and self._relay.leads:
            self._relay.wake()
        self._notifier.tell(buffers, self._credits.take_given(), events=bool(buffers.events) and not self._relay.leads)
        if self._listener is not None:
            self._listener.committed(buffers, buffers.freed())

    def _heard(self, word: Notice) -> None:
        """On the notifier's thread: another process has committed."""
        for kind, prio, lowest in word.ready:
            self._floors.lower((kind, prio), lowest)
        if word.due_at is not None:
            self._floors.lower(TIMERS, word.due_at)
        self._credits.ask_again(word.free)
        if word.events and self._relay.leads:
            self._relay.wake(late=word.late)
        ready = {(kind, prio) for kind, prio, _ in word.ready}
        buffers = AfterCommit(ready=ready, due_at=word.due_at, behind=word.behind, cancelled=word.cancelled)
        self._announce(buffers, word.free)

    def _moved(self) -> None:
        """On the relay's thread: events were numbered and can be read."""
        self._notifier.tell(AfterCommit(), [], events=True)
        self._announce(AfterCommit(), [])

    def _announce(self, buffers: AfterCommit, freed: list[str]) -> None:
        if self._loop is not None and self._listener is not None and not self._closing.is_set():
            self._loop.call_soon_threadsafe(self._listener.committed, buffers, freed)

    # Upkeep

    async def maintain(self) -> None:
        now = self.clock.monotonic()
        if now - self._floors_reset_at >= FLOOR_SECONDS:
            self._floors_reset_at = now
            self._floors.reset()
        if self._owner.taken_for_dead or now - self._owner_checked_at >= OWNER_SECONDS:
            self._owner_checked_at = now
            await self._check_owners()
        idle, debts = self._credits.idle(), self._credits.debts()
        if idle:
            await self.write(give_back, idle)
        if debts:
            await self.write(pay_debts, debts)
        lacking = self._credits.ask_again()
        if lacking and self._listener is not None:
            self._listener.committed(AfterCommit(), lacking)

    async def _check_owners(self) -> None:
        # Not on the writers: they can't commit while this process has no ids.
        present, dead_hold_credit = await self.read(look_at_owners, self.owner)
        if not present:
            await self._go_on_under_a_new_name()
        if dead_hold_credit:
            await self.recount()
        if self._lending.reservations:
            self._credits.apply(self._lending.reservations.settle(await self.read(self._lending.reservations.look)))

    async def _go_on_under_a_new_name(self) -> None:
        """Others took this process for dead and gave its work and its credit away."""
        before = self.owner
        self._credits.forget()
        self._lending.forget()
        await asyncio.to_thread(self._join)
        self._take_name()
        log.warning("registered_again", before=before, owner=self.owner, note="others took this process for dead")

    async def recount(self) -> None:
        with in_our_words():
            await asyncio.to_thread(self._recount)

    def _recount(self) -> None:
        with self._connections.connect() as connection:
            recount(connection)

    async def warnings(self) -> list[str]:
        unsafe = await self.read(lambda tx: tx.rows(sql.find_unsafe_settings))
        return [f"the server has {name} = off: if its machine fails, accepted work may be lost" for (name,) in unsafe]

    def stalled_seconds(self) -> float:
        return max((writer.stalled_seconds() for writer in set(self._writers.values())), default=0.0)

    def gauges(self) -> dict[str, float]:
        writers = set(self._writers.values())
        return {
            "commits_total": sum(writer.commits for writer in writers),
            "reruns_total": sum(writer.reruns for writer in writers),
            "handover_depth": sum(writer.waiting() for writer in writers),
            "stalled_seconds": self.stalled_seconds(),
            **self._notifier.gauges,
        }
