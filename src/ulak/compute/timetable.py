"""What is to happen later on the dispatcher's thread: deadlines, kills, retries, checks."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from ulak.compute.work import Finished

Act = Callable[[Finished], None]
_LONGEST_SECONDS = 60.0


class Timetable:
    __slots__ = ("_acts", "_numbers", "sleeps_until")

    def __init__(self) -> None:
        self._acts: list[tuple[float, int, Act]] = []
        self._numbers = count()
        self.sleeps_until = 0.0

    def add(self, due: float, act: Act) -> bool:
        """True when the thread sleeps longer than that and must be woken."""
        heapq.heappush(self._acts, (due, next(self._numbers), act))
        return due < self.sleeps_until

    def __len__(self) -> int:
        return len(self._acts)

    def prune(self, is_past: Callable[[Act], bool]) -> None:
        self._acts = [entry for entry in self._acts if not is_past(entry[2])]
        heapq.heapify(self._acts)

    def pause(self, now: float) -> float:
        due = self._acts[0][0] if self._acts else now + _LONGEST_SECONDS
        pause = min(max(0.0, due - now), _LONGEST_SECONDS)
        self.sleeps_until = now + pause
        return pause

    def is_due(self, now: float) -> bool:
        return bool(self._acts) and self._acts[0][0] <= now

    def run(self, now: float, finished: Finished) -> None:
        while self._acts and self._acts[0][0] <= now:
            heapq.heappop(self._acts)[2](finished)
