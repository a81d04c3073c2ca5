"""How long to wait before the next attempt: exponential, capped, with jitter that is only ever added."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ulak.errors import Invalid


@dataclass(frozen=True, slots=True)
class Backoff:
    """Attempt 1 waits `first_seconds`, each later one `factor` times longer, never more than `cap_seconds`.

    Up to `jitter` of the delay is added at random, so that failures of one moment do not come back in one moment.
    """

    first_seconds: float = 1.0
    factor: float = 2.0
    cap_seconds: float = 3600.0
    jitter: float = 0.25

    def __post_init__(self) -> None:
        for name in ("first_seconds", "factor", "cap_seconds", "jitter"):
            number = getattr(self, name)
            if not isinstance(number, float | int) or not number >= 0:
                raise Invalid(f"{name} of a Backoff must be a number of at least 0, not {number!r}")

    def delay_seconds(self, attempt: int, chance: random.Random | None = None) -> float:
        return self._plain_seconds(min(attempt - 1, 64)) * (1 + self.jitter * (chance or random).random())

    def _plain_seconds(self, exponent: int) -> float:
        try:
            return min(self.first_seconds * float(self.factor) ** exponent, self.cap_seconds)
        except OverflowError:  # a large factor leaves the numbers behind
            return self.cap_seconds
