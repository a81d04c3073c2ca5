"""The live stream of an inbox: follows the event log, so it can be resumed from where it stopped and misses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from ulak.notify import inbox
from ulak.notify.inbox import ADDED, InboxItem, mark_of
from ulak.spine.event import Reset, find_reset, last_seq, read_on
from ulak.spine.store import Store, Tx

PAGE = 1000
KEEP_ALIVE_SECONDS = 15.0
LOOK_SECONDS = 1.0
NUMBERING_SECONDS = 0.05  # where a relay numbers the events, they are readable a moment after the commit

Watch = AbstractContextManager[asyncio.Event]


class Seen(NamedTuple):
    """A page of the log: where it ends, what it skipped, the recipient's items in it, and whether there may be more."""

    cursor: int
    reset: Reset | None
    items: list[tuple[int, InboxItem]]
    more: bool


class InboxStream:
    def __init__(self, open_store: Callable[[], Store], watching: Callable[[], Watch]) -> None:
        self._store = open_store
        self._watching = watching

    async def follow(self, recipient: str, after: int | None) -> AsyncIterator[tuple[int, InboxItem | Reset | None]]:
        """(cursor, item) for every new item; (cursor, None) at first and now and then, so a dead line is noticed.

        (cursor, reset) when items may be missing, because the log does not reach back, or forward, to `after`.
        """
        store = self._store()
        with self._watching() as news:
            cursor, reset = await store.read(_begin, after)
            yield cursor, reset
            quiet = 0.0
            while True:
                news.clear()
                cursor, reset, items, more = await store.read(_look, recipient, cursor)
                if reset is not None:
                    yield reset.resume, reset
                for seq, item in items:
                    yield seq, item
                if more:
                    continue
                quiet = 0.0 if items else quiet + LOOK_SECONDS
                if quiet >= KEEP_ALIVE_SECONDS:
                    quiet = 0.0
                    yield cursor, None
                if await store.clock.wait(news, LOOK_SECONDS) and store.shared:
                    await store.clock.wait(asyncio.Event(), NUMBERING_SECONDS)


def _begin(tx: Tx, after: int | None) -> tuple[int, Reset | None]:
    if after is None:
        return last_seq(tx), None
    reset = find_reset(tx, after)
    return (after if reset is None else reset.resume), reset


def _look(tx: Tx, recipient: str, cursor: int) -> Seen:
    mark = mark_of(recipient)
    reset, events = read_on(tx, cursor, PAGE)
    found = [
        (event.seq, inbox.item(tx, recipient, event.job))
        for event in events
        if event.name == ADDED and event.kind == mark
    ]
    items = [(seq, item) for seq, item in found if item is not None]
    return Seen(events[-1].seq if events else cursor, reset, items, bool(events))
