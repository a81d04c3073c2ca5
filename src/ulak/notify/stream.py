"""The live stream of an inbox: follows the event log, so it can be resumed from where it stopped and misses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from ulak.notify import inbox
from ulak.notify.inbox import ADDED, InboxItem, mark_of
from ulak.spine.event import Reset
from ulak.spine.loops.tail import Tail, TailPage
from ulak.spine.store import Tx

KEEP_ALIVE_SECONDS = 15.0

Told = tuple[int, InboxItem | Reset | None]


class InboxStream:
    def __init__(self, open_tail: Callable[[], Tail]) -> None:
        self._tail = open_tail

    async def begin(self, after: int | None) -> TailPage:
        """Where a follower stands who has seen the log up to `after`, or nothing yet."""
        return await self._tail().begin(after)

    async def follow(self, recipient: str, start: TailPage) -> AsyncIterator[Told]:
        """(cursor, item) for every new item; (cursor, None) at first and now and then, so a dead line is noticed.

        (cursor, reset) when items may be missing, because the log does not reach back, or forward, to where it begins.
        """
        tail, mark = self._tail(), mark_of(recipient)
        clock, spoken_at = tail.store.clock, float("-inf")
        async with aclosing(tail.follow(start)) as pages:
            async for page in pages:
                told: list[Told] = [] if page.reset is None else [(page.reset.resume, page.reset)]
                added = [(one.seq, one.job) for one in page.events if one.name == ADDED and one.kind == mark]
                told += await tail.store.read(_items, recipient, added) if added else []
                if not told and clock.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
                    told.append((page.cursor, None))
                for one in told:
                    spoken_at = clock.monotonic()
                    yield one


def _items(tx: Tx, recipient: str, added: list[tuple[int, int]]) -> list[Told]:
    """Those that are still there: old ones are pruned."""
    found = [(seq, inbox.item(tx, recipient, identifier)) for seq, identifier in added]
    return [(seq, item) for seq, item in found if item is not None]
