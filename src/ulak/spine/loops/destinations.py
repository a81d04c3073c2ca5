"""Destinations of attempts: whether an attempt may go there now, and what its end says about the destination."""

from __future__ import annotations

from typing import Any

from ulak.clock import Clock
from ulak.errors import PutOff, Throttled, Transient
from ulak.spine.breaker import Breaker, Breakers
from ulak.spine.loops.running import Attempt
from ulak.spine.outcome import Dead, Done, Outcome, Snooze
from ulak.spine.telemetry import Telemetry

# A job that finds no place asks again after as long as the oldest attempt there has taken, within these limits.
MIN_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0
# One that an open breaker stops looks again this soon: a reset hastens the jobs of a key, and it has another key.
MAX_BREAKER_SECONDS = 30.0


class DestinationGuard:
    """The breakers of one process, and its places at destinations.

    A destination that is the key of its jobs needs no places: there the store's slots limit how many run at once.
    """

    def __init__(self, breakers: Breakers, clock: Clock, telemetry: Telemetry) -> None:
        self._breakers = breakers
        self._clock = clock
        self._telemetry = telemetry
        self._under_way: dict[str, dict[Attempt, int]] = {}  # since when, the oldest first

    def admit(self, running: Attempt, payload: Any, now: int) -> Snooze | None:
        """None when the attempt may go, which then has to `leave`; otherwise when to ask again."""
        key, handler = running.lease.key, running.handler
        if handler.breaker is None or key is None:
            return None
        found = None if handler.destination is None else handler.destination(key, payload)
        running.destination = key if found is None else found[0]
        if found is not None and (pause := self._wait_for_place(running, *found, now)) is not None:
            return Snooze(pause, "as many as may run at once are under way to its destination", holds=True)
        breaker = self._breakers.admit(running.destination, now)
        if breaker is None:
            return None
        self.leave(running)
        self._telemetry.count("breaker_stops", handler.kind)
        pause = breaker.pause_seconds(now) if found is None else _pause_of_any_number(breaker, now)
        # It holds its slot, or an open breaker would walk through the whole line.
        return Snooze(pause, f"the breaker of its destination is {breaker.state}", holds=True)

    def _wait_for_place(self, running: Attempt, destination: str, places: int, now: int) -> float | None:
        under_way = self._under_way.setdefault(destination, {})
        if len(under_way) < places:
            under_way[running] = now
            return None
        seconds = (now - next(iter(under_way.values()))) / 1000
        return min(max(seconds, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS)

    def leave(self, running: Attempt) -> None:
        under_way = self._under_way.get(running.destination or "")
        if under_way is not None and under_way.pop(running, None) is not None and not under_way:
            del self._under_way[running.destination or ""]

    def answered(self, running: Attempt, outcome: Outcome) -> None:
        """A handler that gives up because its destination failed has not reached it; one that puts off may not have."""
        destination, policy = running.destination, running.handler.breaker
        if destination is None or policy is None:
            return
        if not isinstance(outcome, Done | Dead) or outcome.unsent:
            self._breakers.learned_nothing(destination, self._clock.now())
        elif outcome.error_class in ("transient", "throttled"):
            self._breakers.failed(destination, policy, self._clock.now())
        else:
            self._breakers.succeeded(destination)

    def failed(self, running: Attempt, error: BaseException) -> None:
        destination, policy = running.destination, running.handler.breaker
        if destination is None or policy is None:
            return
        if not getattr(error, "tells_of_destination", True):
            self._breakers.learned_nothing(destination, self._clock.now())
        elif isinstance(error, Transient | Throttled | OSError | TimeoutError) and not isinstance(error, PutOff):
            self._breakers.failed(destination, policy, self._clock.now())
        else:  # the destination was reached and answered
            self._breakers.succeeded(destination)


def _pause_of_any_number(breaker: Breaker, now: int) -> float:
    """Of a destination's own key only those with a slot ask; of other keys, any number may."""
    if breaker.state == "half-open":
        return MAX_PAUSE_SECONDS
    return min(breaker.pause_seconds(now), MAX_BREAKER_SECONDS)
