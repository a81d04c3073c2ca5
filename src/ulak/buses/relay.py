"""The way out: follows the event log from a durable cursor, produces, and moves the cursor once all is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from ulak.backoff import Backoff
from ulak.buses import lease, waiting
from ulak.buses.resender import MAX_WAITING, Resender
from ulak.buses.route import EventRouter
from ulak.errors import Error, Unavailable
from ulak.log import get_logger
from ulak.spine.bus import BusMessage, MessageBus
from ulak.spine.loops.tail import Tail, TailPage
from ulak.spine.store import Store, Tx
from ulak.spine.units import followers
from ulak.spine.units.records import find_traces

log = get_logger("ulak.bus")

ELECTION_SECONDS = 1.0
IDLE_SECONDS = 3.0  # how often the cursor is saved and the lease renewed while no event is routed
FOLLOWER = "bus"


class BusRelay:
    """Relays events; one process per store leads. After a crash before our commit, the last page is sent again.

    Messages that their topic does not take are kept in the store, with all later messages for that topic.
    """

    def __init__(self, bus: MessageBus, store: Store, tail: Tail, router: EventRouter, *, traced: bool) -> None:
        self._bus = bus
        self._store = store
        self._tail = tail
        self._router = router
        self._traced = traced
        self._stopping = asyncio.Event()
        self._backoff = Backoff(0.2, 2.0, 10.0)
        self._kept_at = 0.0
        self.position = 0
        self.resender = Resender(bus, store)
        self._sent = 0
        self.leads = False
        self.trouble: str | None = None

    @property
    def sent(self) -> int:
        return self._sent + self.resender.sent

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            try:
                found = await self._store.write(_lead, self._store.owner)
                self.leads = found is not None
                if found is not None:
                    await self._relay(*found)
            except Error as error:
                log.warning("bus_relay_waits", error=str(error))
            except Exception:  # events wait in the log, so the relay must go on
                log.exception("bus_relay_failed")
            await self._pause(ELECTION_SECONDS)
        if self.leads:
            await self._store.write(lease.drop, self._store.owner)

    async def _relay(self, start: int, waiting: Mapping[str, int]) -> None:
        self.resender.begin(waiting)
        resending = asyncio.create_task(self.resender.run(), name="ulak-bus-resender")
        try:
            await self._follow(start, resending)
        finally:
            self.resender.stop()
            await resending

    async def _follow(self, start: int, resending: asyncio.Task[None]) -> None:
        """Follow until another process leads or the resender has ended: without it, topics would wait for ever."""
        self.position, self._kept_at = start, self._store.clock.monotonic()
        async with aclosing(self._tail.follow(await self._tail.begin(start))) as pages:
            async for page in pages:
                if page.reset is not None:
                    log.error("bus_events_lost", asked=page.reset.asked, oldest=page.reset.oldest)
                if self._stopping.is_set() or resending.done() or not await self._pass_on(page):
                    return

    async def _pass_on(self, page: TailPage) -> bool:
        """Send a page and move the cursor past it. Return whether this process still leads."""
        jobs = self._router.routed_jobs(page.events) if self._traced else ()
        traces = await self._store.read(find_traces, jobs) if jobs else {}
        messages = self._router.messages(page.events, traces)
        kept = await self._produce(messages) if messages else _NOTHING
        if kept is None:
            return False
        now = self._store.clock.monotonic()
        if not messages and now - self._kept_at < IDLE_SECONDS:
            return True
        self.leads = await self._store.write(_advance, self._store.owner, page.cursor, kept.messages)
        if self.leads:
            self.position, self._kept_at = page.cursor, now
            self._sent += len(messages) - len(kept.messages)
            self.resender.add(*kept)
        return self.leads

    async def _produce(self, messages: Sequence[BusMessage]) -> _Kept | None:
        """Retry until the bus has all or the rest can be kept. None if the lease is lost or this process stops."""
        attempt = 0
        while not self._stopping.is_set():
            try:
                kept = await self._try(messages)
            except Unavailable as error:
                self._say(str(error))
                attempt += 1
                await self._pause(self._backoff.delay_seconds(attempt))
                if not await self._store.write(lease.hold, self._store.owner):
                    return None
            else:
                self._say(None)
                return kept
        return None

    async def _try(self, messages: Sequence[BusMessage]) -> _Kept:
        if self.resender.is_full:
            raise Unavailable(f"{MAX_WAITING:,} messages wait for topics that do not take them, which is the bound")
        behind = [one for one in messages if self.resender.has(one.topic)]
        free = [one for one in messages if not self.resender.has(one.topic)]
        refused = await self._bus.produce(free) if free else []
        troubles = {one.message.topic: one.cause for one in reversed(refused)}
        return _Kept([*behind, *(one.message for one in refused)], troubles)

    def _say(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            log.warning("bus_unavailable", error=trouble, note="messages wait in the event log")
        elif trouble is None and self.trouble is not None:
            log.info("bus_available")
        self.trouble = trouble

    async def _pause(self, seconds: float) -> None:
        await self._store.clock.wait(self._stopping, seconds)


class _Kept(NamedTuple):
    """Messages that must wait for their topics, and the cause for each topic that is new among them."""

    messages: Sequence[BusMessage]
    troubles: Mapping[str, str]


_NOTHING = _Kept((), {})


def _lead(tx: Tx, owner: int) -> tuple[int, dict[str, int]] | None:
    """Return the cursor and the number of waiting messages by topic; None while another process leads."""
    return (followers.register(tx, FOLLOWER), waiting.count(tx)) if lease.hold(tx, owner) else None


def _advance(tx: Tx, owner: int, position: int, kept: Sequence[BusMessage]) -> bool:
    if not lease.hold(tx, owner):
        return False
    waiting.keep(tx, position, kept)
    followers.advance(tx, FOLLOWER, position)
    return True
