"""The live stream of an inbox: follows the event log, so it can be resumed from where it stopped and misses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

from ulak.notify import inbox
from ulak.notify.inbox import ADDED, InboxItem, mark_of
from ulak.spine.event import last_seq, read_events
from ulak.spine.store import Store, Tx

PAGE = 1000
KEEP_ALIVE_SECONDS = 15.0
LOOK_SECONDS = 1.0
NUMBERING_SECONDS = 0.05  # where a relay numbers the events, they are readable a moment after the commit

Watch = AbstractContextManager[asyncio.Event]


class InboxStream:
    def __init__(self, open_store: Callable[[], Store], watching: Callable[[], Watch]) -> None:
        self._store = open_store
        self._watching = watching

    async def follow(self, recipient: str, after: int | None) -> AsyncIterator[tuple[int, InboxItem | None]]:
        """(cursor, item) for every new item; (cursor, None) now and then, so that a dead line is noticed."""
        store = self._store()
        cursor = await store.read(last_seq) if after is None else after
        quiet = 0.0
        with self._watching() as news:
            while True:
                news.clear()
                cursor, items = await store.read(_look, recipient, cursor)
                for item in items:
                    yield item
                quiet = 0.0 if items else quiet + LOOK_SECONDS
                if quiet >= KEEP_ALIVE_SECONDS:
                    quiet = 0.0
                    yield cursor, None
                if await store.clock.wait(news, LOOK_SECONDS) and store.shared:
                    await store.clock.wait(asyncio.Event(), NUMBERING_SECONDS)


def _look(tx: Tx, recipient: str, cursor: int) -> tuple[int, list[tuple[int, InboxItem | None]]]:
    """A page of the log: the new cursor, and the recipient's items in it."""
    mark = mark_of(recipient)
    events = read_events(tx, cursor, PAGE)
    found = [
        (event.seq, inbox.item(tx, recipient, event.job))
        for event in events
        if event.name == ADDED and event.kind == mark
    ]
    return (events[-1].seq if events else cursor), [(seq, item) for seq, item in found if item is not None]
