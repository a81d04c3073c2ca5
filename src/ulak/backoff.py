"""How long to wait before the next attempt: exponential, capped, with jitter that is only ever added."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Attempt 1 waits `first_seconds`, each later one `factor` times longer, never more than `cap_seconds`.

    Up to `jitter` of the delay is added at random, so that failures of one moment do not come back in one moment.
    """

    first_seconds: float = 1.0
    factor: float = 2.0
    cap_seconds: float = 3600.0
    jitter: float = 0.25

    def delay_seconds(self, attempt: int, chance: random.Random | None = None) -> float:
        exponent = min(attempt - 1, 64)
        delay = min(self.first_seconds * self.factor**exponent, self.cap_seconds)
        return delay * (1 + self.jitter * (chance or random).random())
