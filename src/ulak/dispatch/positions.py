"""Positions in bulk: hints, the newest of each helper in memory, written in slices as fast as the store takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from ulak.clock import Clock
from ulak.dispatch.nearby.geo import point_at, to_nano
from ulak.errors import Refused
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

MAX_WAITING = 1_000_000
MAX_TRIES = 3
# So many are sorted at a time, which holds up the loop for some 20 ms. Fewer would touch more pages for each row.
MAX_TAKEN = 100_000


class Hint(NamedTuple):
    """Where a helper was; `id` is ours."""

    id: int
    latitude: float
    longitude: float
    at: int
    tries: int = 0


class Hints:
    """What is not written yet. A crash loses it, and the helper's next position mends that."""

    def __init__(self, clock: Callable[[], Clock]) -> None:
        self._clock = clock
        self._waiting: dict[int, Hint] = {}
        self._writing: dict[int, Hint] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._writing)

    def put(self, hints: Iterable[Hint]) -> None:
        if len(self) >= MAX_WAITING:
            raise Refused("positions come faster than they are written; send fewer", retry_after_seconds=1)
        self._waiting.update((one.id, one) for one in hints)

    def forget(self, helper: int) -> None:
        """A position that is durable is newer than any hint."""
        self._waiting.pop(helper, None)

    def lag_seconds(self) -> float:
        """How long the oldest has waited: a dictionary keeps the order in which helpers first came."""
        first = next((hint for hints in (self._writing, self._waiting) for hint in hints.values()), None)
        return 0.0 if first is None else max(self._clock().now() - first.at, 0) / 1000

    def take(self) -> list[Hint]:
        """The oldest of those that wait, to be written in the order of ids."""
        self._writing = {one: self._waiting.pop(one) for one in list(islice(self._waiting, MAX_TAKEN))}
        return [self._writing[one] for one in sorted(self._writing)]

    def written(self, reached: Collection[int]) -> None:
        """Keep whom the store did not reach, unless something newer came meanwhile."""
        for one in self._writing.values():
            if one.id not in reached and one.tries + 1 < MAX_TRIES:
                self._waiting.setdefault(one.id, one._replace(tries=one.tries + 1))
        self._writing = {}


def flush(tx: Tx, hints: Sequence[Hint]) -> set[int]:
    """Write a slice; returns whom it reached. Who is held by another transaction is left for the next time."""
    rows = []
    for one in hints:
        point = point_at(one.latitude, one.longitude)
        rows.append((one.id, to_nano(one.latitude), to_nano(one.longitude), *point, one.at))
    return {identifier for (identifier,) in tx.insert_rows(sql.flush_positions, rows)}


class KnownHelper(msgspec.Struct, array_like=True):
    helper: str
    id: int


def known_helpers(tx: Tx, names: Sequence[str]) -> dict[str, int]:
    """Thousands at once: packed, since fetching one by one would give the interpreter's lock away as often."""
    return {one.helper: one.id for one in tx.rows_as(sql.find_known, KnownHelper, names=list(names))}
