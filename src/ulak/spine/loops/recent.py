"""The last blocks of the event log in memory, for followers that keep up: they need not ask the store for them."""

from __future__ import annotations

from collections import deque

from ulak.spine.event import EventRecord, of_blocks
from ulak.spine.store import Block

MAX_BYTES = 1_000_000


class Recent:
    """The newest blocks, without a gap, up to `max_events` and a megabyte."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._blocks: deque[Block] = deque()
        self._bytes = 0

    def add(self, block: Block) -> None:
        """Add the newest block. A block that does not fit is read from the store, and so is all before it."""
        if self._blocks and block.first != self._after_last():
            self._blocks.clear()  # a commit between them was not seen here
            self._bytes = 0
        self._blocks.append(block)
        self._bytes += len(block.body)
        while self._blocks and (
            self._bytes > MAX_BYTES or self._after_last() - self._blocks[0].first > self._max_events
        ):
            self._bytes -= len(self._blocks.popleft().body)

    def above(self, cursor: int, limit: int) -> list[EventRecord]:
        """The events that follow the cursor; none if it is at the end, or if those that follow it are not here."""
        if not self._blocks or not self._blocks[0].first <= cursor + 1 < self._after_last():
            return []
        wanted: deque[Block] = deque()
        for block in reversed(self._blocks):
            wanted.appendleft(block)
            if block.first <= cursor + 1:
                break
        return of_blocks(wanted, cursor, limit)

    def _after_last(self) -> int:
        return self._blocks[-1].first + self._blocks[-1].number
