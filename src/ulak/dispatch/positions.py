"""Positions in bulk: hints, the newest of each helper in memory, written in slices as fast as the store takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop
from itertools import repeat

import msgspec

from ulak.clock import Clock
from ulak.dispatch.forms import NamedPosition
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.errors import Refused
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

MAX_WAITING = 1_000_000
MAX_TRIES = 3
# An answer waits for one slice at most, and shares its commit. At 2 ms and 64 rows on SQLite an accept beside positions
# took three times as long. Fewer rows than these make more syncs than a slow disk has time for.
SLICE_SHARE = 0.5  # of the time that the store gives a slice of any other load: answers are waited for
MIN_SLICE_ROWS = 32
TOGETHER = 500  # positions whose helpers are looked up at a time: more would hold up the loop


class Hint(msgspec.Struct, gc=False):
    """Where a helper was, and when it said so. Up to a million wait: the collector need not look at them."""

    position: NamedPosition
    at: int


NumberedHint = tuple[int, Hint]


class Hints:
    """Positions that are not written yet, by our id. A crash loses them, and the helper's next position mends that."""

    def __init__(self, clock: Callable[[], Clock]) -> None:
        self._clock = clock
        self._waiting: dict[int, Hint] = {}
        self._writing: dict[int, Hint] = {}
        self._left: list[int] = []  # of those that are being written, a heap
        self._missed: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._left)

    def put(self, ids: Iterable[int], positions: Iterable[NamedPosition], at: int) -> None:
        if len(self) >= MAX_WAITING:
            raise Refused("positions come faster than they are written; send fewer", retry_after_seconds=1)
        self._waiting.update(zip(ids, map(Hint, positions, repeat(at)), strict=True))

    def forget(self, helper: int) -> None:
        """A position that is durable is newer than any hint."""
        self._waiting.pop(helper, None)

    def lag_seconds(self) -> float:
        """How long the oldest has waited: a dictionary keeps the order in which helpers first came."""
        first = next((hint for hints in (self._writing, self._waiting) for hint in hints.values()), None)
        return 0.0 if first is None else max(self._clock().now() - first.at, 0) / 1000

    def take(self) -> Iterator[NumberedHint]:
        """All that wait, in the order of ids, because neighbours share pages; each as new as it is at its turn.

        A heap spreads the work of sorting over the slices: sorting all of them first would hold up the loop.
        """
        taken, self._waiting = self._waiting, {}
        self._writing, self._left = taken, list(taken)
        heapify(self._left)
        return self._each(taken, self._left)

    def _each(self, taken: dict[int, Hint], left: list[int]) -> Iterator[NumberedHint]:
        while left:
            one = heappop(left)
            newer = self._waiting.pop(one, None)
            if newer is not None:
                taken[one] = newer
            yield one, taken[one]

    def written(self, hints: Iterable[NumberedHint], missed: Iterable[NumberedHint]) -> None:
        """Keep whom the store did not reach, unless something newer came meanwhile."""
        tried = {one: self._missed.get(one, 0) + 1 for one, _ in missed}
        for one, hint in hints:
            del self._writing[one]
            self._missed.pop(one, None)
            if one not in self._waiting and 0 < tried.get(one, 0) < MAX_TRIES:
                self._waiting[one], self._missed[one] = hint, tried[one]

    def end(self) -> None:
        """Keep what is not written, if the store has failed."""
        if self._writing:
            self._waiting = self._writing | self._waiting
            self._writing, self._left = {}, []


def flush(tx: Tx, hints: Sequence[NumberedHint]) -> list[NumberedHint]:
    """Write a slice; returns whom it did not reach: another transaction holds them."""
    rows = []
    for identifier, hint in hints:
        latitude, longitude = hint.position.latitude, hint.position.longitude
        rows.append((identifier, to_nano(latitude), to_nano(longitude), *point_at(latitude, longitude), hint.at))
    reached = {identifier for (identifier,) in tx.insert_rows(sql.flush_positions, rows)}
    return [one for one in hints if one[0] not in reached]
