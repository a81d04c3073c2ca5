"""Positions in bulk: hints, the newest of each helper in memory, written in slices as fast as the store takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, repeat

from ulak.clock import Clock
from ulak.dispatch.forms import NamedPosition
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.errors import Refused
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

MAX_WAITING = 1_000_000
MAX_TRIES = 3
# So many are sorted at a time, which holds up the loop for some 10 ms. Fewer would touch more pages for each row.
MAX_TAKEN = 50_000
SLICE_ROWS = 500


Hint = tuple[NamedPosition, int]  # where a helper was, and when it said so


class Hints:
    """Positions that are not written yet, by our id. A crash loses them, and the helper's next position mends that."""

    def __init__(self, clock: Callable[[], Clock]) -> None:
        self._clock = clock
        self._waiting: dict[int, Hint] = {}
        self._writing: dict[int, Hint] = {}
        self._missed: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._writing)

    def put(self, ids: Iterable[int], positions: Iterable[NamedPosition], at: int) -> None:
        if len(self) >= MAX_WAITING:
            raise Refused("positions come faster than they are written; send fewer", retry_after_seconds=1)
        self._waiting.update(zip(ids, zip(positions, repeat(at), strict=False), strict=False))

    def forget(self, helper: int) -> None:
        """A position that is durable is newer than any hint."""
        self._waiting.pop(helper, None)

    def lag_seconds(self) -> float:
        """How long the oldest has waited: a dictionary keeps the order in which helpers first came."""
        first = next((hint for hints in (self._writing, self._waiting) for hint in hints.values()), None)
        return 0.0 if first is None else max(self._clock().now() - first[1], 0) / 1000

    def take(self) -> Iterator[tuple[int, Hint]]:
        """The oldest of those that wait, to be written in the order of ids."""
        taken, self._waiting = self._waiting, {}
        if len(taken) > MAX_TAKEN:
            self._waiting, taken = taken, {one: taken.pop(one) for one in list(islice(taken, MAX_TAKEN))}
        self._writing = taken
        return ((one, taken[one]) for one in sorted(taken))

    def written(self, reached: Collection[int]) -> None:
        """Keep whom the store did not reach, unless something newer came meanwhile."""
        missed: dict[int, int] = {}
        for one in self._writing.keys() - reached:
            tries = self._missed.get(one, 0) + 1
            if one not in self._waiting and tries < MAX_TRIES:
                self._waiting[one], missed[one] = self._writing[one], tries
        self._writing, self._missed = {}, missed


def flush(tx: Tx, hints: Sequence[tuple[int, Hint]]) -> set[int]:
    """Write a slice; returns whom it reached. Who is held by another transaction is left for the next time."""
    rows = []
    for identifier, (position, at) in hints:
        latitude, longitude = position.latitude, position.longitude
        rows.append((identifier, to_nano(latitude), to_nano(longitude), *point_at(latitude, longitude), at))
    return {identifier for (identifier,) in tx.insert_rows(sql.flush_positions, rows)}
