"""Capacity: how many more jobs may be accepted, in pools of active and of live jobs, and how many are parked by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

# Behind a kind: the pool of its live jobs. No kind of anybody ends like this.
_LIVE = "\tlive"


def live_pool(kind: str) -> str:
    """The pool of all live jobs of a kind; that of its active ones has the kind's own name."""
    return kind + _LIVE


def line_of(key: str) -> str:
    """Return the name of the line in which callers wait until fewer jobs of a key are parked."""
    return f"\tkey\t{key}"


class Capacity:
    """Knows how many more jobs may be accepted, by pool, and how many are parked, by key. Only commits change it.

    Every kind has two pools: `active` bounds what is ready or runs, `live` what is parked as well. A key is remembered
    while jobs of it are parked, so there are at most as many as parked jobs: 127 MB for a million of them.
    """

    def __init__(self, active: Callable[[str], int], live: Callable[[str], int] | None = None) -> None:
        self._active = active
        self._live = live or active
        self.available: dict[str, int] = {}
        self.parked: dict[str, int] = {}
        self.closed_because: str | None = None

    def bound(self, pool: str) -> int:
        kind = pool.removesuffix(_LIVE)
        return self._active(pool) if kind == pool else self._live(kind)

    def free(self, pool: str) -> int:
        found = self.available.get(pool)
        return self.available.setdefault(pool, self.bound(pool)) if found is None else found

    def load(self, kinds: Iterable[tuple[str, int, int]], keys: Iterable[tuple[str, int]]) -> None:
        """Start from the store's counts: (kind, live jobs, active jobs) and (key, parked jobs)."""
        for kind, live, active in kinds:
            self.available[kind] = self.free(kind) - active
            self.available[live_pool(kind)] = self.free(live_pool(kind)) - live
        self.parked = dict(keys)

    def apply(self, change: Counter[str]) -> list[str]:
        """Apply a commit's changes; return the pools that have gained capacity."""
        for pool, number in change.items():
            self.available[pool] = self.free(pool) + number
        return [pool for pool, number in change.items() if number > 0]

    def move(self, change: Counter[str]) -> None:
        """Apply a commit's changes to the numbers of parked jobs."""
        for key, number in change.items():
            left = self.parked.get(key, 0) + number
            if left > 0:
                self.parked[key] = left
            else:
                self.parked.pop(key, None)
