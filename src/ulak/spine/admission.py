"""The gate: bounded admission with `put` (wait), `offer` (refuse) and `offer(timeout)`. Who waits longest goes first."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence

from ulak.clock import Clock
from ulak.errors import Refused, Unavailable
from ulak.spine.enqueue import ENQUEUE, Full
from ulak.spine.handler import Handlers
from ulak.spine.job import Row
from ulak.spine.store import Store
from ulak.spine.telemetry import Telemetry

RETRY_AFTER_SECONDS = 1.0


class Gate:
    def __init__(self, store: Store, clock: Clock, handlers: Handlers, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._telemetry = telemetry
        self._waiting: defaultdict[str, deque[asyncio.Event]] = defaultdict(deque)
        self._closed = False

    async def enqueue(self, rows: Sequence[Row]) -> list[int]:
        """By the policy of the first row's kind: block, reject, or wait up to a time."""
        kind = rows[0].kind
        if not self._waiting.get(kind):  # the usual case, kept short: nobody waits, so try at once
            self._check(kind)
            verdict = await self._store.submit(ENQUEUE, rows)
            if not isinstance(verdict, Full):
                self._telemetry.count("jobs_accepted", kind, number=len(rows))
                return verdict
        handler = self._handlers.get(rows[0].kind)
        if handler is None or handler.admission == "block":
            return await self.put(rows)
        ids = await self.offer(rows, handler.wait_seconds if handler.admission == "wait" else 0.0)
        if ids is None:
            raise Refused(
                f"{rows[0].kind} has reached its bound of {self._store.ledger.capacity(rows[0].kind)} unfinished jobs; try again later",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        return ids

    async def put(self, rows: Sequence[Row]) -> list[int]:
        """Wait for room, for as long as it takes."""
        ids = await self._admit(rows, None)
        assert ids is not None  # without a time limit it ends with ids or an error
        return ids

    async def offer(self, rows: Sequence[Row], timeout_seconds: float = 0.0) -> list[int] | None:
        """None when there was no room within the time."""
        return await self._admit(rows, timeout_seconds)

    async def _admit(self, rows: Sequence[Row], timeout_seconds: float | None) -> list[int] | None:
        kind = rows[0].kind
        ends_at = None if timeout_seconds is None else self._clock.monotonic() + timeout_seconds
        if self._waiting[kind] and not await self._turn(kind, ends_at):
            self._count_refusal(kind, "full")
            return None
        while True:
            self._check(kind)
            verdict = await self._store.submit(ENQUEUE, rows)
            if not isinstance(verdict, Full):
                self._telemetry.count("jobs_accepted", kind, number=len(rows))
                return verdict
            if len(rows) > self._store.ledger.capacity(verdict.kind):
                raise Refused(f"{len(rows)} jobs at once can never fit into the bound of {verdict.kind}; send fewer at a time")
            if not await self._turn(verdict.kind, ends_at, first=True):
                self._count_refusal(kind, "full")
                return None

    def _check(self, kind: str) -> None:
        if self._closed:
            raise Unavailable("this Ulak is stopping; nothing new is accepted")
        reason = self._store.ledger.closed_because
        if reason is not None:
            self._count_refusal(kind, "disk")
            raise Unavailable(f"new work is refused: {reason}")

    def _count_refusal(self, kind: str, reason: str) -> None:
        self._telemetry.count("jobs_refused", kind, reason)

    async def _turn(self, kind: str, ends_at: float | None, *, first: bool = False) -> bool:
        """Stand in line until room is announced; who was first and found none stays first."""
        seconds = None if ends_at is None else ends_at - self._clock.monotonic()
        if seconds is not None and seconds <= 0:
            return False
        event = asyncio.Event()
        line = self._waiting[kind]
        (line.appendleft if first else line.append)(event)
        try:
            return await self._clock.wait(event, seconds)
        finally:
            if event in line:
                line.remove(event)
            elif not event.is_set():
                self.announce([kind])

    def announce(self, kinds: list[str]) -> None:
        """Room has come free: let as many go as fit."""
        for kind in kinds:
            line = self._waiting.get(kind)
            room = self._store.ledger.room(kind) if line else 0
            while line and room > 0:
                line.popleft().set()
                room -= 1

    def close(self) -> None:
        self._closed = True
        for line in self._waiting.values():
            while line:
                line.popleft().set()
