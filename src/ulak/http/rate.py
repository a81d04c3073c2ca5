"""The rate limit: a bucket of tokens per API key, a second's worth deep. Kept in memory, per process."""

from __future__ import annotations

from ulak.access.caller import Caller
from ulak.clock import Clock
from ulak.errors import Refused


class Rates:
    def __init__(self, per_second: float, clock: Clock) -> None:
        self._per_second = per_second
        self._depth = max(per_second, 1.0)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: Caller) -> None:
        """Take one token or refuse. There are as many buckets as there are keys, so they need no tidying."""
        if not self._per_second:
            return
        now = self._clock.monotonic()
        tokens, seen = self._buckets.get(caller.id, (self._depth, now))
        tokens = min(tokens + (now - seen) * self._per_second, self._depth)
        if tokens < 1:
            self._buckets[caller.id] = (tokens, now)
            raise Refused(
                f"{caller.name} makes more than {self._per_second:g} requests a second (http.rate_per_key_per_second)",
                retry_after_seconds=(1 - tokens) / self._per_second,
            )
        self._buckets[caller.id] = (tokens - 1, now)
