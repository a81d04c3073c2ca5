"""Floors: up to which turn nothing of a level is ready, and up to which instant no timer waits.

Jobs that were claimed and timers that have fired stay in the index until vacuum may remove them, and that may not
happen while somebody holds an old snapshot: without a floor, every claim and every look at the timers would walk over
them. A floor that is too high only delays a job until the next reset, a second later.
"""

from __future__ import annotations

import threading

Level = tuple[str, int]

# The timers' own level, which no kind has. Its floor is an instant instead of a turn.
TIMERS: Level = ("", -1)
NO_TIMER = 1 << 62  # the floor when none waits: beyond any due time


class Floors:
    def __init__(self) -> None:
        self._floors: dict[Level, int] = {}
        self._claiming: dict[Level, int | None] = {}  # floors that were lowered while a claim was under way
        self._lock = threading.Lock()

    def begin(self, level: Level) -> int:
        """The floor for a claim, or a look at the timers, that begins now."""
        with self._lock:
            self._claiming[level] = None
            return self._floors.get(level, 0)

    def of(self, level: Level) -> int:
        """The floor for a look that claims nothing."""
        with self._lock:
            return self._floors.get(level, 0)

    def raise_to(self, level: Level, turn: int) -> None:
        """Raise a floor after a claim's commit: nothing is left up to this turn (or instant) but later arrivals."""
        with self._lock:
            lowered = self._claiming.pop(level, None)
            self._floors[level] = turn if lowered is None else min(turn, lowered)

    def lower(self, level: Level, turn: int) -> None:
        """A job with this turn has become ready, or is due at this instant; 0 when that is not known."""
        below = max(turn - 1, 0)
        with self._lock:
            if level in self._floors:
                self._floors[level] = min(self._floors[level], below)
            if level in self._claiming:
                before = self._claiming[level]
                self._claiming[level] = below if before is None else min(before, below)

    def reset(self) -> None:
        with self._lock:
            self._floors.clear()
            self._claiming = dict.fromkeys(self._claiming, 0)
