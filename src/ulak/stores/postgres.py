"""PostgreSQL: many processes, one database. Two connections write merged statements; the rest goes beside them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import structlog

from ulak.clock import Clock
from ulak.errors import Misconfigured, Refused, Unavailable
from ulak.spine.job import Row
from ulak.spine.query import Queries
from ulak.spine.store import LAST_SECONDS, Buffers, Ledger, Line, Listener, Tx, Verb
from ulak.stores import caller
from ulak.stores.migrate import prepare_postgres
from ulak.stores.postgres_address import without_secrets
from ulak.stores.postgres_check import check_place
from ulak.stores.postgres_clock import DatabaseClock
from ulak.stores.postgres_credits import Credits
from ulak.stores.postgres_floors import TIMERS, Floors
from ulak.stores.postgres_herald import Herald
from ulak.stores.postgres_loans import Loans
from ulak.stores.postgres_member import Member
from ulak.stores.postgres_news import Word
from ulak.stores.postgres_reader import Reader
from ulak.stores.postgres_recount import recount
from ulak.stores.postgres_relay import Relay
from ulak.stores.postgres_session import PostgresSession, in_our_words
from ulak.stores.postgres_tx import PostgresTx
from ulak.stores.postgres_wires import Wires
from ulak.stores.writer import RUN_UNIT, Writer

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

log = structlog.get_logger("ulak.postgres")
sql = Queries("ulak.spine")

# Whoever admits new work must be one thread: room is spent in memory.
_WORKING = (Line.SETTLE, Line.TIMERS, Line.CLAIM)
_ADMITTING = (Line.ENQUEUE, Line.UNIT)

FLOOR_SECONDS = 1.0
MEMBER_SECONDS = 5.0


class PostgresStore:
    shared = True

    def __init__(
        self,
        uri: str,
        clock: Clock,
        capacity: Callable[[str], int],
        lease_seconds: float = 15.0,
        pool_of: Callable[[str], str] = str,
        *,
        works: bool = True,
    ) -> None:
        self._wires = Wires(uri)
        self.name = without_secrets(uri)
        self._clock = DatabaseClock(clock)
        self.clock: Clock = self._clock
        self._credits = Credits(capacity, pool_of, self._clock)
        self.ledger: Ledger = self._credits
        self._works = works
        self._floors = Floors()
        self._loans = Loans()
        self._member = Member(lease_seconds, by_hand=self._clock.by_hand)
        self.ids = self._member.ids
        self.owner = 0
        self._closing = threading.Event()
        self._reader = Reader(self._wires, self._clock, self._credits, self._member)
        self._herald = Herald(self._wires, self._clock, self._heard)
        self._relay = Relay(self._wires, self._clock, self._moved)
        self._writers: dict[Line, Writer] = {}
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._floors_reset_at = self._member_checked_at = 0.0

    # Life

    async def open(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = loop = asyncio.get_running_loop()
        with in_our_words():
            sessions = await asyncio.to_thread(self._prepare)
        self._take_name()
        for session, name, lines in zip(sessions, ("ulak-work", "ulak-admit"), (_WORKING, _ADMITTING), strict=True):
            writer = Writer(name, session, lines, loop, self._committed, listener.lost)
            self._writers |= dict.fromkeys(lines, writer)
            writer.start()
        self._herald.start()
        self._relay.start()
        try:
            await self._look_around()
        except BaseException:
            await self.close()
            raise

    async def _look_around(self) -> None:
        for warning in await self.warnings():
            log.warning("not_durable", note=warning)
        if len(await self.read(lambda tx: tx.all(sql.list_owners))) == 1:
            await self.recount()

    def _prepare(self) -> list[PostgresSession]:
        sessions: list[PostgresSession] = []
        try:
            check_place(self._wires.connect)
            with self._wires.connect() as connection:
                self._clock.ask(connection)  # before it is used: it does not go back
                prepare_postgres(connection, self.clock.now())
            sessions += [self._session(admits=False), self._session(admits=True)]
            self._join()
        except BaseException:
            for session in sessions:
                session.close()
            raise
        return sessions

    def _session(self, *, admits: bool) -> PostgresSession:
        return PostgresSession(
            self._wires, self._clock, self._credits, self._floors, self._member, self._closing, admits=admits
        )

    def _join(self) -> None:
        """Take a place among those that share the database."""
        with self._wires.connect() as connection:
            self._member.register(connection.cursor(binary=True), self.clock.now())

    def _take_name(self) -> None:
        """On the event loop, so that nobody there sees the one without the other."""
        self.ids, self.owner = self._member.ids, self._member.owner
        self.alight()  # a claim that waits is in the old name

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
            await self._writers[Line.CLAIM].close()
            await self._writers[Line.UNIT].close(last=self._say_goodbye)
            await asyncio.to_thread(self._end_threads, seconds)
        await self._reader.close(seconds)

    def _hang_up(self) -> None:
        """Nobody waits for this server any more; whether it still does what it was asked for, nobody can know."""
        self._wires.cut()
        for writer in set(self._writers.values()):
            writer.give_up()

    def _say_goodbye(self, tx: Tx) -> None:
        """Give everything back, and the node at once: whoever takes it makes ids that this process must make no more.

        What can't be given back now, others find when the lease has run out.
        """
        assert isinstance(tx, PostgresTx)
        for pool, number in sorted(self._credits.available.items()):
            if number:
                tx.give_credit(pool, number)
        tx.run(sql.delete_owner, id=self.owner)

    def _end_threads(self, seconds: float) -> None:
        self._relay.close(seconds)
        self._herald.close(seconds)

    # Work

    def submit(self, verb: Verb[T, R], item: T) -> Awaitable[R]:
        writer = self._writers.get(verb.line)
        if writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return writer.submit(verb, item)

    def ride(self, verb: Verb[T, R], item: T) -> asyncio.Future[R | None]:
        writer = self._writers.get(verb.line)
        if writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return writer.ride(verb, item)

    def alight(self) -> None:
        for writer in self._writers.values():
            writer.alight()

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await self.submit(RUN_UNIT, lambda tx: unit(tx, *args, **kwargs))
        return answer

    async def read(self, work: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._reader.read(lambda tx: work(tx, *args, **kwargs))

    async def enqueue_in(self, connection: Any, rows: Sequence[Row]) -> list[int]:
        """The room is taken before and outside, so that the caller's transaction holds up nobody else."""
        wanted = self._by_pool(row.kind for row in rows)
        await self._set_aside(wanted)
        work = asyncio.ensure_future(
            caller.enqueue(connection, rows, self.clock.now(), self._member, self._credits.pool_of)
        )
        work.add_done_callback(partial(self._lent, wanted))
        try:
            ids, _ = await asyncio.shield(work)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])  # a thread may still be at work on the caller's connection
            raise
        return ids

    async def _set_aside(self, wanted: Counter[str]) -> None:
        lending = asyncio.ensure_future(self.write(_lend, wanted))
        try:
            lacking = await asyncio.shield(lending)
        except asyncio.CancelledError:
            lending.add_done_callback(partial(self._not_needed, wanted))  # the writer lends it all the same
            raise
        if lacking is not None:
            raise Refused(
                f"{lacking} has reached its bound of unfinished jobs; try again later", retry_after_seconds=1.0
            )

    def _not_needed(self, wanted: Counter[str], lending: asyncio.Future[str | None]) -> None:
        if not lending.cancelled() and lending.exception() is None and lending.result() is None:
            self._credits.apply(wanted)

    def _lent(self, wanted: Counter[str], work: asyncio.Future[caller.Answer]) -> None:
        """They have run or have not, whoever still waits for them: room that they did not use comes back."""
        loan = None if work.cancelled() or work.exception() is not None else work.result()[1]
        self._credits.apply(wanted if loan is None else wanted - loan.pools)
        if loan is not None:
            self._loans.add(loan)

    def _by_pool(self, kinds: Iterable[str]) -> Counter[str]:
        return Counter(self._credits.pool_of(kind) for kind in kinds)

    async def backup(self, path: str) -> None:
        raise Misconfigured(
            f"PostgreSQL has its own tool for this; run: pg_dump --format=custom --file={path} '{self.name}'"
        )

    # What others are told, and what they tell

    def _committed(self, buffers: Buffers) -> None:
        """On the event loop, after a commit. The ledger and the floors have followed it already."""
        if buffers.events and self._relay.leads:
            self._relay.wake()
        self._herald.tell(buffers, self._credits.take_given(), events=bool(buffers.events) and not self._relay.leads)
        if self._listener is not None:
            self._listener.committed(buffers, [pool for pool, number in buffers.room.items() if number > 0])

    def _heard(self, word: Word) -> None:
        """On the herald's thread: another process has committed."""
        for kind, prio, lowest in word.ready:
            self._floors.lower((kind, prio), lowest)
        if word.due_at is not None:
            self._floors.lower(TIMERS, word.due_at)
        self._credits.ask_again(word.room)
        if word.events and self._relay.leads:
            self._relay.wake(late=word.late)
        ready = {(kind, prio) for kind, prio, _ in word.ready}
        buffers = Buffers(ready=ready, due_at=word.due_at, behind=word.behind, cancelled=word.cancelled)
        self._announce(buffers, word.room)

    def _moved(self) -> None:
        """On the relay's thread: events were numbered and can be read."""
        self._herald.tell(Buffers(), [], events=True)
        self._announce(Buffers(), [])

    def _announce(self, buffers: Buffers, room_for: list[str]) -> None:
        if self._loop is not None and self._listener is not None and not self._closing.is_set():
            self._loop.call_soon_threadsafe(self._listener.committed, buffers, room_for)

    # Upkeep

    async def tend(self) -> None:
        now = self.clock.monotonic()
        if now - self._floors_reset_at >= FLOOR_SECONDS:
            self._floors_reset_at = now
            self._floors.reset()
        if self._member.taken_for_dead or now - self._member_checked_at >= MEMBER_SECONDS:
            self._member_checked_at = now
            await self._check_members()
        idle = self._credits.idle()
        if idle:
            await self.write(_give_back, idle)
        lacking = self._credits.ask_again()
        if lacking and self._listener is not None:
            self._listener.committed(Buffers(), lacking)

    async def _check_members(self) -> None:
        # Beside the writers: they can't commit while this process has no ids.
        present, dead_hold_credit = await self.read(_look_at_members, self.owner)
        if not present:
            await self._go_on_under_a_new_name()
        if dead_hold_credit:
            await self.recount()
        if self._loans:
            self._credits.apply(self._loans.settle(await self.read(self._loans.look)))

    async def _go_on_under_a_new_name(self) -> None:
        """Others took this process for dead and gave its work and its credit away."""
        before = self.owner
        self._credits.forget()
        self._loans = Loans()  # of the credit that is gone
        await asyncio.to_thread(self._join)
        self._take_name()
        log.warning("registered_again", before=before, owner=self.owner, note="others took this process for dead")

    async def recount(self) -> None:
        """Left to those who work: others may know none of the handlers, and so not which kinds share a pool."""
        if not self._works:
            return
        with in_our_words():
            await asyncio.to_thread(self._recount)

    def _recount(self) -> None:
        with self._wires.connect() as connection:
            recount(connection, self._credits.pool_of)

    async def warnings(self) -> list[str]:
        unsafe = await self.read(lambda tx: tx.all(sql.find_unsafe_settings))
        return [f"the server has {name} = off: if its machine fails, accepted work may be lost" for (name,) in unsafe]

    def silent_seconds(self) -> float:
        return max((writer.silent_seconds() for writer in set(self._writers.values())), default=0.0)

    def facts(self) -> dict[str, float]:
        writers = set(self._writers.values())
        return {
            "commits_total": sum(writer.commits for writer in writers),
            "reruns_total": sum(writer.reruns for writer in writers),
            "handover_depth": sum(writer.waiting() for writer in writers),
            "silent_seconds": self.silent_seconds(),
            **self._herald.facts,
        }


def _lend(tx: Tx, wanted: Counter[str]) -> str | None:
    assert isinstance(tx, PostgresTx)
    return tx.lend(wanted)


def _give_back(tx: Tx, idle: dict[str, int]) -> None:
    assert isinstance(tx, PostgresTx)
    for pool, number in sorted(idle.items()):
        if tx.at_hand(pool) >= number:
            tx.give_credit(pool, number)


def _look_at_members(tx: Tx, owner: int) -> tuple[bool, bool]:
    return tx.one(sql.find_owner, id=owner) is not None, tx.one(sql.find_credit_of_the_dead) is not None
