"""The gate: bounded admission by `put` (wait), `offer` (refuse), `offer(timeout)`. Who waits longest goes first."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import defaultdict
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar

from ulak.clock import Clock
from ulak.errors import Refused, Unavailable
from ulak.spine.enqueue import ENQUEUE, Full
from ulak.spine.handler import Handlers
from ulak.spine.job import Row
from ulak.spine.store import Store, Verb
from ulak.spine.telemetry import Telemetry

RETRY_AFTER_SECONDS = 1.0

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class Waiter:
    """A place in line: the ticket is kept until the end, so who was woken in vain goes back to where it stood."""

    ticket: int
    need: int
    event: asyncio.Event = field(default_factory=asyncio.Event)


class Gate:
    def __init__(self, store: Store, clock: Clock, handlers: Handlers, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._telemetry = telemetry
        self._waiting: defaultdict[str, list[Waiter]] = defaultdict(list)
        self._tickets = count()
        self._closed = False

    def enqueue(self, rows: Sequence[Row]) -> Coroutine[Any, Any, list[int]]:
        """By the policy of the first row's kind: block, reject, or wait up to a time."""
        return self.by_policy(rows[0].kind, ENQUEUE, rows, len(rows))

    async def put(self, rows: Sequence[Row]) -> list[int]:
        """Wait for room, for as long as it takes."""
        ids = await self._admit(rows[0].kind, ENQUEUE, rows, len(rows), None)
        assert ids is not None  # without a time limit it ends with ids or an error
        return ids

    async def offer(self, rows: Sequence[Row], timeout_seconds: float = 0.0) -> list[int] | None:
        """None when there was no room within the time."""
        return await self._admit(rows[0].kind, ENQUEUE, rows, len(rows), timeout_seconds)

    async def by_policy(self, kind: str, verb: Verb[T, R | Full], item: T, number: int) -> R:
        """Any verb that may answer Full, with what the kind's policy says of waiting."""
        verdict = await self.at_once(kind, verb, item)
        return await self.in_line(kind, verb, item, number) if isinstance(verdict, Full) else verdict

    def at_once(self, kind: str, verb: Verb[T, R | Full], item: T) -> Awaitable[R | Full]:
        """The usual case, kept short: nobody waits, so try. Full when it does not fit; then it goes `in_line`."""
        if self._waiting and self._waiting.get(self._store.ledger.pool_of(kind)):
            return _full(kind)
        if self._closed or self._store.ledger.closed_because is not None:
            self._check(kind)
        return self._store.submit(verb, item)

    async def in_line(self, kind: str, verb: Verb[T, R | Full], item: T, number: int) -> R:
        """Behind all who wait, for as long as the kind's policy says."""
        answer = await self._admit(kind, verb, item, number, self._patience(kind))
        if answer is None:
            bound = self._store.ledger.capacity(self._store.ledger.pool_of(kind))
            raise Refused(
                f"{kind} has reached its bound of {bound} unfinished jobs; try again later",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        return answer

    def _patience(self, kind: str) -> float | None:
        handler = self._handlers.get(kind)
        if handler is None or handler.admission == "block":
            return None
        return handler.wait_seconds if handler.admission == "wait" else 0.0

    async def _admit(
        self, kind: str, verb: Verb[T, R | Full], item: T, number: int, timeout_seconds: float | None
    ) -> R | None:
        pool = self._store.ledger.pool_of(kind)
        ends_at = None if timeout_seconds is None else self._clock.monotonic() + timeout_seconds
        waiter = Waiter(next(self._tickets), number)
        if self._waiting[pool] and not await self._turn(pool, waiter, ends_at):
            self._count_refusal(kind, "full")
            return None
        while True:
            verdict = await self._try(pool, kind, verb, item)
            if not isinstance(verdict, Full):
                return verdict
            pool, waiter.need = self._store.ledger.pool_of(verdict.kind), verdict.number
            if verdict.number > self._store.ledger.capacity(pool):
                raise Refused(
                    f"{verdict.number} jobs at once never fit into the bound of {verdict.kind}; send fewer at a time"
                )
            if not await self._turn(pool, waiter, ends_at):
                self._count_refusal(kind, "full")
                return None

    async def _try(self, pool: str, kind: str, verb: Verb[T, R | Full], item: T) -> R | Full:
        try:
            self._check(kind)
            return await self._store.submit(verb, item)
        except BaseException:
            self.announce([pool])  # the room that this one was woken for is left to the next
            raise

    def _check(self, kind: str) -> None:
        if self._closed:
            raise Unavailable("this Ulak is stopping; nothing new is accepted")
        reason = self._store.ledger.closed_because
        if reason is not None:
            self._count_refusal(kind, "disk")
            raise Unavailable(f"new work is refused: {reason}")

    def _count_refusal(self, kind: str, reason: str) -> None:
        self._telemetry.count("jobs_refused", kind, reason)

    async def _turn(self, pool: str, waiter: Waiter, ends_at: float | None) -> bool:
        """Stand in line until room is announced, or the time is over."""
        seconds = None if ends_at is None else ends_at - self._clock.monotonic()
        if seconds is not None and seconds <= 0:
            self.announce([pool])  # it may have been this one's turn
            return False
        line = self._waiting[pool]
        is_first = not line or waiter.ticket < line[0].ticket
        if self._closed or (is_first and self._store.ledger.room(pool) >= waiter.need):
            return True  # came free between the refusal and here, or there is nothing to wait for any more
        waiter.event.clear()
        insort(line, waiter, key=attrgetter("ticket"))
        woken = False
        try:
            woken = await self._clock.wait(waiter.event, seconds)
        finally:
            if waiter in line:
                line.remove(waiter)
            if not woken:
                self.announce([pool])
        return woken

    def announce(self, pools: list[str]) -> None:
        """Room has come free: let as many go as fit."""
        for pool in pools:
            line = self._waiting.get(pool)
            room = self._store.ledger.room(pool) if line else 0
            while line and room > 0:
                waiter = line.pop(0)
                room -= waiter.need
                waiter.event.set()

    def close(self) -> None:
        self._closed = True
        for line in self._waiting.values():
            while line:
                line.pop(0).event.set()


async def _full(kind: str) -> Full:
    return Full(kind)
