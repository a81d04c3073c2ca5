"""Acts due later on the dispatcher's thread: deadlines, kills, retries, checks."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from itertools import count
from time import monotonic

from ulak.compute.engine.work import FINAL, Finished, Work

Act = Callable[[Finished], None]
_MAX_PAUSE_SECONDS = 60.0
_MANY = 1000


class Timetable:
    __slots__ = ("_acts", "_many", "_numbers", "_sleeps_until", "_wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._acts: list[tuple[float, int, Act]] = []
        self._numbers = count()
        self._many = _MANY
        self._sleeps_until = 0.0
        self._wake = wake

    def later(self, seconds: float, act: Act) -> None:
        due = monotonic() + seconds
        heapq.heappush(self._acts, (due, next(self._numbers), act))
        if due < self._sleeps_until:
            self._wake()
        if len(self._acts) > self._many:
            self._prune()

    def __len__(self) -> int:
        return len(self._acts)

    def _prune(self) -> None:
        """Long timeouts of short tasks would otherwise pile up."""
        self._acts = [entry for entry in self._acts if not _is_past(entry[2])]
        heapq.heapify(self._acts)
        self._many = 2 * len(self._acts) + _MANY

    def pause(self, now: float) -> float:
        due = self._acts[0][0] if self._acts else now + _MAX_PAUSE_SECONDS
        pause = min(max(0.0, due - now), _MAX_PAUSE_SECONDS)
        self._sleeps_until = now + pause
        return pause

    def is_due(self, now: float) -> bool:
        return bool(self._acts) and self._acts[0][0] <= now

    def run(self, now: float, finished: Finished) -> None:
        while self._acts and self._acts[0][0] <= now:
            heapq.heappop(self._acts)[2](finished)


def _is_past(act: Act) -> bool:
    """Whether it is about work that is over."""
    first = act.args[0] if isinstance(act, partial) and act.args else None
    return isinstance(first, Work) and first.state == FINAL
