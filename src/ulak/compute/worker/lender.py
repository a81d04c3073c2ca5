"""A worker's segments for results: lent to the parent, and used again when it has given them back."""

from __future__ import annotations

from collections import deque
from itertools import count

from ulak.compute.worker.shared_memory import PAGE, Segment, new_segment

MAX_BYTES = 64 * 1024 * 1024  # of all segments that are lent or free
MAX_SEGMENTS = 64
_MAX_SEGMENT_BYTES = 16 * 1024 * 1024  # a larger one is for its result alone


class Lender:
    def __init__(self, returned: deque[int]) -> None:
        """`returned` is where the tickets of what the parent has given back arrive."""
        self._returned = returned
        self._tickets = count(1)
        self._lent: dict[int, Segment] = {}
        self._free: list[Segment] = []
        self._bytes = 0

    def lend(self, size: int) -> Segment:
        """One whose pages are there already, which makes writing four times as fast, or a new one."""
        while self._returned:
            self._free.append(self._lent.pop(self._returned.popleft()))
        segment = self._fitting(size) or self._new(size)
        if segment.size:
            segment.ticket = next(self._tickets)
            self._lent[segment.ticket] = segment
        return segment

    def forfeit(self, segment: Segment) -> None:
        """It was lent and could not be written: nobody will give it back."""
        if self._lent.pop(segment.ticket, None):
            self._bytes -= segment.size

    def _fitting(self, size: int) -> Segment | None:
        """The latest that came back and is not far too large: a small result that is kept must not keep much."""
        for place in reversed(range(len(self._free))):
            if size <= self._free[place].size <= 2 * size:
                self._free[place].map_pages()
                return self._free.pop(place)
        return None

    def _new(self, size: int) -> Segment:
        """With a size of 0 when it is not to come back."""
        segment, size = new_segment(), -(-size // PAGE) * PAGE
        if size > _MAX_SEGMENT_BYTES:
            return segment
        while self._free and self._is_full(size):
            self._bytes -= self._free.pop(0).size
        if not self._is_full(size):
            segment.extend(size)
            self._bytes += size
        return segment

    def _is_full(self, size: int) -> bool:
        return self._bytes + size > MAX_BYTES or len(self._lent) + len(self._free) >= MAX_SEGMENTS
