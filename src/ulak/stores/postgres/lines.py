"""Knows how many jobs of a key are parked on a shared database: counted now and then, followed in between.

A key is counted at most once a second; what this process parks and wakes is added at once, and what others do is seen
by the next count. So a key's share may be exceeded by what the other processes accept for it within a second.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from ulak.clock import Clock

MAX_KEYS = 10_000  # beyond these all are counted anew


class Lines:
    def __init__(self, clock: Clock, ask_seconds: float = 1.0) -> None:
        self._clock = clock
        self.ask_seconds = ask_seconds
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[float, int]] = {}

    def known(self, keys: Sequence[str]) -> dict[str, int]:
        """The counts that are young enough."""
        since = self._clock.monotonic() - self.ask_seconds
        with self._lock:
            return {key: found[1] for key in keys if (found := self._counted.get(key)) is not None and found[0] > since}

    def note(self, counts: Mapping[str, int]) -> None:
        now = self._clock.monotonic()
        with self._lock:
            if len(self._counted) > MAX_KEYS:
                self._counted.clear()
            self._counted |= {key: (now, number) for key, number in counts.items()}

    def move(self, change: Counter[str]) -> None:
        """Note jobs that a commit of ours has parked or woken."""
        with self._lock:
            for key, number in change.items():
                if key in self._counted:
                    counted_at, before = self._counted[key]
                    self._counted[key] = (counted_at, max(before + number, 0))
