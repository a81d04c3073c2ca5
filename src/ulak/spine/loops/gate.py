"""The gate: bounded admission by `put` (wait), `offer` (refuse), `offer(timeout)`. The longest wait goes first."""

from __future__ import annotations

import asyncio
import math
from bisect import insort
from collections import defaultdict
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar

from ulak.clock import Clock
from ulak.errors import Unavailable
from ulak.spine.breaker import Breakers
from ulak.spine.capacity import line_of, live_pool
from ulak.spine.handler import Handlers
from ulak.spine.job import Row
from ulak.spine.loops.drain import MAX_RETRY_SECONDS, MIN_RETRY_SECONDS, DrainRates
from ulak.spine.loops.full_bounds import FullBounds
from ulak.spine.patience import bounded_wait, is_request
from ulak.spine.store import Store, Verb
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.enqueue import ENQUEUE, STILL_FULL, Full

T = TypeVar("T")
R = TypeVar("R")

_OF_KEY = line_of("")


@dataclass(eq=False)
class Waiter:
    """A place in line: the ticket is kept until the end, so a caller that was woken in vain goes back to its place."""

    ticket: int
    need: int
    event: asyncio.Event = field(default_factory=asyncio.Event)
    is_request: bool = field(default_factory=is_request)
    missed: bool = False  # something of its key came free while it was not in line, but on its way to the store


class Gate:
    """There is a line for each pool, and one for each key whose share is used up: it holds up nobody else."""

    def __init__(
        self, store: Store, clock: Clock, handlers: Handlers, telemetry: Telemetry, breakers: Breakers
    ) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._telemetry = telemetry
        self._breakers = breakers
        self._waiting: defaultdict[str, list[Waiter]] = defaultdict(list)
        self._trying: defaultdict[str, set[Waiter]] = defaultdict(set)  # by line, of keys only
        self._tickets = count()
        self._refuses_requests = False
        self._closed = False
        self.full = FullBounds(clock, store.capacity)
        self.drain = DrainRates(clock)

    def enqueue(self, rows: Sequence[Row]) -> Coroutine[Any, Any, list[int]]:
        """By the policy of the first row's kind: block, reject, or wait up to a time."""
        return self.by_policy(rows[0], ENQUEUE, rows, len(rows))

    async def put(self, rows: Sequence[Row]) -> list[int]:
        """Wait for capacity, for as long as it takes."""
        answer = await self._admit(rows[0], ENQUEUE, rows, len(rows), None)
        assert not isinstance(answer, Full)  # without a time limit it ends with ids or an error
        return answer

    async def offer(self, rows: Sequence[Row], timeout_seconds: float = 0.0) -> list[int] | None:
        """None when there was no capacity within the time."""
        answer = await self._admit(rows[0], ENQUEUE, rows, len(rows), timeout_seconds)
        return None if isinstance(answer, Full) else answer

    async def by_policy(
        self, row: Row, verb: Verb[T, R | Full], item: T, number: int, wait_seconds: float | None = None
    ) -> R:
        """Submit a verb that may answer Full; wait as the caller says, or the kind's policy. 0 is an offer."""
        verdict = await self.at_once(row, verb, item)
        return await self.in_line(row, verb, item, number, wait_seconds) if isinstance(verdict, Full) else verdict

    def at_once(self, row: Row, verb: Verb[T, R | Full], item: T) -> Awaitable[R | Full]:
        """Try without waiting, which is the usual case and kept short. If it is Full, the caller goes `in_line`."""
        if self._waiting and self._line_ahead(row) is not None:
            return _full(row.kind)
        if self._refuses_requests or self._store.capacity.closed_because is not None:
            self._check(row.kind)
        return self._store.submit(verb, item)

    async def in_line(
        self, row: Row, verb: Verb[T, R | Full], item: T, number: int, wait_seconds: float | None = None
    ) -> R:
        """Wait behind all that wait for the same, as long as the caller, the request or the kind's policy says."""
        wait = bounded_wait(self._patience(row.kind)) if wait_seconds is None else wait_seconds
        answer = await self._admit(row, verb, item, number, None if wait == math.inf else wait)
        if isinstance(answer, Full):
            raise answer.refusal(self._store.capacity, self._retry_after_seconds(answer))
        return answer

    def _retry_after_seconds(self, full: Full) -> float:
        """Estimate when a caller that comes back finds a place: after all that stand in line, or after a trial."""
        breaker = None if full.key is None else self._breakers.stopping_at(full.key)
        if breaker is not None:
            return min(max(breaker.pause_seconds(self._clock.now()), MIN_RETRY_SECONDS), MAX_RETRY_SECONDS)
        ahead = sum(waiter.need for waiter in self._waiting.get(full.line, ()))
        return self.drain.seconds_for(full.pool, ahead + full.number)

    def _patience(self, kind: str) -> float | None:
        handler = self._handlers.get(kind)
        if handler is None or handler.admission == "block":
            return None
        return handler.wait_seconds if handler.admission == "wait" else 0.0

    def _line_ahead(self, row: Row) -> str | None:
        """Return the line in which others wait for what this job needs as well.

        A job with a key or a later due time may need no place among the active ones: only a try shows that.
        """
        lines = [live_pool(row.kind)]
        if row.key is not None:
            lines.append(line_of(row.key))
        elif row.due_at <= row.accepted_at:
            lines.append(row.kind)
        return next((line for line in lines if self._waiting.get(line)), None)

    async def _admit(
        self, row: Row, verb: Verb[T, R | Full], item: T, number: int, timeout_seconds: float | None
    ) -> R | Full:
        """Return the verb's answer, or Full with the reason when the time is over."""
        ends_at = None if timeout_seconds is None else self._clock.monotonic() + timeout_seconds
        waiter = Waiter(next(self._tickets), number)
        line = self._line_ahead(row)
        if line is not None:
            ahead = _lacking_at(line, row, number)
            if self._is_hopeless(ahead, ends_at) or not await self._turn(line, waiter, ends_at):
                return self._refuse(row.kind, ahead)
        line = line or row.kind
        while True:
            answer = await self._try(line, row, verb, item, waiter)
            if not isinstance(answer, Full):
                if _is_of_key(line):
                    self.announce([line])  # of such a line one goes after another
                return answer
            line, waiter.need = answer.line, answer.number
            answer.check_size(self._store.capacity)
            self.full.note(answer)
            if self._is_hopeless(answer, ends_at) or not await self._turn(line, waiter, ends_at):
                return self._refuse(row.kind, answer)

    def _is_hopeless(self, verdict: Full, ends_at: float | None) -> bool:
        """A destination that is down accepts nothing soon, so a caller with a time limit is refused immediately."""
        return ends_at is not None and verdict.key is not None and self._is_down(verdict.key)

    def _is_down(self, key: str) -> bool:
        return self._breakers.stopping_at(key) is not None

    def _refuse(self, kind: str, verdict: Full) -> Full:
        self._count_refusal(kind, "full" if verdict.key is None else "share")
        return verdict

    async def _try(self, line: str, row: Row, verb: Verb[T, R | Full], item: T, waiter: Waiter) -> R | Full:
        try:
            with self._on_its_way(row.key, waiter):
                self._check(row.kind)
                return await self._store.submit(verb, item)
        except BaseException:
            self.announce([line])  # the capacity that this one was woken for is left to the next
            raise

    @contextmanager
    def _on_its_way(self, key: str | None, waiter: Waiter) -> Iterator[None]:
        """Meanwhile it hears of its key by a mark: how much is free of a share can't be asked here."""
        waiter.missed = False
        if key is None:
            yield
            return
        name = line_of(key)
        self._trying[name].add(waiter)
        try:
            yield
        finally:
            self._trying[name].discard(waiter)
            if not self._trying[name]:
                del self._trying[name]

    def _check(self, kind: str) -> None:
        if self._closed or (self._refuses_requests and is_request()):
            raise Unavailable("this Ulak is stopping; nothing new is accepted", outcome="no")
        reason = self._store.capacity.closed_because
        if reason is not None:
            self._count_refusal(kind, "disk")
            raise Unavailable(f"new work is refused: {reason}")

    def _count_refusal(self, kind: str, reason: str) -> None:
        self._telemetry.count("jobs_refused", kind, reason)

    async def _turn(self, name: str, waiter: Waiter, ends_at: float | None) -> bool:
        """Stand in line until capacity is announced, or the time is over."""
        seconds = None if ends_at is None else ends_at - self._clock.monotonic()
        if seconds is not None and seconds <= 0:
            self.announce([name])  # it may have been this one's turn
            return False
        line = self._waiting[name]
        is_first = not line or waiter.ticket < line[0].ticket
        if (
            self._closed
            or (self._refuses_requests and waiter.is_request)
            or waiter.missed
            or (is_first and self._free(name) >= waiter.need)
        ):
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
                self.announce([name])
            if not line and self._waiting.get(name) is line:
                del self._waiting[name]
        return woken

    def _free(self, name: str) -> int:
        """Return how much is free; 0 for a key's share, which is not known here."""
        return 0 if _is_of_key(name) else self._store.capacity.free(name)

    def announce(self, lines: list[str]) -> None:
        """Let as many waiters go as fit into the freed capacity; of a key's line the first, which lets the next one go.

        If the key's destination is down, all go and are refused with that reason.
        """
        if not self._waiting and not self._trying:
            return  # as nearly always
        for name in lines:
            line = self._waiting.get(name)
            if _is_of_key(name):
                self._announce_key(name, line)
                continue
            free = self._store.capacity.free(name) if line else 0
            while line and free > 0:
                waiter = line.pop(0)
                free -= waiter.need
                waiter.event.set()

    def _announce_key(self, name: str, line: list[Waiter] | None) -> None:
        while line:
            line.pop(0).event.set()
            if not self._is_down(name.removeprefix(_OF_KEY)):
                break
        for waiter in self._trying.get(name, ()):
            waiter.missed = True

    def look(self) -> None:
        """Let waiters for a key try now and then: other processes change the key's share and its kind's capacity."""
        self.announce([name for name in self._waiting if _is_of_key(name)])

    async def look_at_full(self) -> None:
        """Check bounds that nobody has met lately: each may have drained, or may still be full."""
        quiet = self.full.quiet(self._waiting)
        still = await self._store.submit(STILL_FULL, quiet) if quiet else []
        for full, is_full in zip(quiet, still, strict=True):
            self.full.looked_at(full, is_full=is_full)

    def refuse_requests(self) -> None:
        """A stop begins: refuse requests that wait. Running jobs may still have more to enqueue."""
        self._refuses_requests = True
        for line in self._waiting.values():
            for waiter in [waiter for waiter in line if waiter.is_request]:
                line.remove(waiter)
                waiter.event.set()

    def close(self) -> None:
        self._refuses_requests = self._closed = True
        for line in self._waiting.values():
            while line:
                line.pop(0).event.set()


def _is_of_key(name: str) -> bool:
    return name.startswith(_OF_KEY)


def _lacking_at(line: str, row: Row, number: int) -> Full:
    """Return the verdict on a caller that never came to the head of a line."""
    key = row.key if row.key is not None and line == line_of(row.key) else None
    return Full(row.kind, number, live=line != row.kind, key=key)


async def _full(kind: str) -> Full:
    return Full(kind)
