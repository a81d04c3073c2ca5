"""How fast capacity comes free, by pool: the basis of the `Retry-After` that a refused caller gets."""

from __future__ import annotations

from math import exp

from ulak.clock import Clock
from ulak.spine.capacity import live_pool
from ulak.spine.job import JobEvent

WINDOW_SECONDS = 10.0  # places that came free earlier count for little
MIN_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0  # also if nothing has come free lately, so that there is no estimate

_PARKS = frozenset({JobEvent.RETRIED, JobEvent.SNOOZED})
_LEAVES = frozenset({JobEvent.DONE, JobEvent.CANCELLED, JobEvent.EXPIRED, JobEvent.DEAD})


class DrainRates:
    """Counts that fade: for each pool the number that came free, when that was, and since when it is counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._freed: dict[str, tuple[float, float, float]] = {}

    def note(self, word: str, kind: str, number: int) -> None:
        """Note a commit's event word, with the number of its jobs."""
        if word in _LEAVES:
            self._add(live_pool(kind), number)
        if word in _LEAVES or word in _PARKS:
            self._add(kind, number)

    def _add(self, pool: str, number: int) -> None:
        now = self._clock.monotonic()
        freed, at, since = self._freed.get(pool, (0.0, now, now))
        self._freed[pool] = (freed * _faded(now - at) + number, now, since)

    def seconds_for(self, pool: str, number: int) -> float:
        """Estimate the time in which that many places come free."""
        now = self._clock.monotonic()
        freed, at, since = self._freed.get(pool, (0.0, now, now))
        # A count that is young has not seen a whole window: it is divided by the part that it has seen.
        seen_seconds = WINDOW_SECONDS * (1 - _faded(max(now - since, MIN_RETRY_SECONDS)))
        per_second = freed * _faded(now - at) / seen_seconds
        if per_second * MAX_RETRY_SECONDS <= number:
            return MAX_RETRY_SECONDS
        return max(number / per_second, MIN_RETRY_SECONDS)


def _faded(seconds: float) -> float:
    return exp(-seconds / WINDOW_SECONDS)
