"""The tail of the event log, for many followers: those at the same place share one read of the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from ulak.spine.event import EventRecord, Reset, find_reset, last_seq, read_on
from ulak.spine.loops.recent import Recent
from ulak.spine.store import Block, Store, Tx

PAGE = 1000
LOOK_SECONDS = 1.0
END_SECONDS = 0.5  # how long an end that was just read is not read again, unless there is news
NUMBERING_SECONDS = 0.05  # where a relay numbers the events, they are readable a moment after the commit

Watch = AbstractContextManager[asyncio.Event]


class TailPage(NamedTuple):
    """The new events (often none), where to read on, a reset if the cursor did not fit; `more`: cut off by a limit."""

    cursor: int
    reset: Reset | None = None
    events: list[EventRecord] = []  # noqa: RUF012 - a tuple's default, and nobody adds to it
    more: bool = False


class Tail:
    def __init__(self, store: Store, watching: Callable[[], Watch]) -> None:
        self.store = store
        self._watching = watching
        self._coming: dict[int, asyncio.Task[TailPage]] = {}
        self._end = (-1, 0.0)
        self._recent = Recent(PAGE)
        self._closed = False

    def close(self) -> None:
        """Read no more. The loops wake the followers, which then leave."""
        self._closed = True

    def note(self, block: Block | None) -> None:
        """Note a commit's block while somebody watches; None where the store numbers events later."""
        if block is not None:
            self._recent.add(block)

    async def begin(self, after: int | None) -> TailPage:
        """Return where to start: at a cursor, at the nearest place if it does not fit, or at the newest event."""
        return await self.store.read(_begin, after)

    async def follow(self, start: TailPage) -> AsyncGenerator[TailPage, None]:
        """Yield the start, then a page at every commit with news and about every second, until Ulak stops."""
        page, fresh = start, True
        with self._watching() as news:
            yield start
            while not self._closed:
                fresh = fresh or news.is_set()
                news.clear()
                page = await self._read(page.cursor, fresh=fresh)
                yield page
                fresh = bool(page.events) or await self._news(news)

    async def _news(self, news: asyncio.Event) -> bool:
        clock = self.store.clock
        told = await clock.wait(news, LOOK_SECONDS)
        if told and self.store.multi_process:
            await clock.wait(asyncio.Event(), NUMBERING_SECONDS)
        return told

    async def _read(self, cursor: int, *, fresh: bool) -> TailPage:
        end, seen = self._end
        if not fresh and end == cursor and self.store.clock.monotonic() - seen < END_SECONDS:
            return TailPage(cursor)
        coming = self._coming.get(cursor)
        if coming is None:
            coming = self._coming[cursor] = asyncio.create_task(self._look(cursor), name="ulak-tail")
            coming.add_done_callback(_take_note)
        return await asyncio.shield(coming)  # a follower that leaves does not cancel it for the others

    async def _look(self, cursor: int) -> TailPage:
        await asyncio.sleep(0)  # let all followers that one commit woke join
        del self._coming[cursor]  # a follower that comes later has newer news, and reads again
        if self._closed:
            return TailPage(cursor)
        if events := self._recent.above(cursor, PAGE):
            return TailPage(events[-1].seq, None, events, len(events) == PAGE)
        seen = self.store.clock.monotonic()
        reset, events, more = await self.store.read(read_on, cursor, PAGE)
        if not events:
            self._end = (cursor, seen)
        return TailPage(events[-1].seq if events else cursor, reset, events, more)


def _begin(tx: Tx, after: int | None) -> TailPage:
    if after is None:
        return TailPage(last_seq(tx))
    reset = find_reset(tx, after)
    return TailPage(after if reset is None else reset.resume, reset)


def _take_note(look: asyncio.Task[TailPage]) -> None:
    """Pass a failure to the readers that wait, if any are left."""
    if not look.cancelled():
        look.exception()
