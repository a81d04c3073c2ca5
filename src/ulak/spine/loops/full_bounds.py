"""Which bounds are full: logged once when one fills and once when it has drained, and listed on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from ulak.clock import Clock
from ulak.log import get_logger
from ulak.masking import mask_text
from ulak.spine.capacity import Capacity
from ulak.spine.units.enqueue import Full

log = get_logger("ulak.gate")

# A bound that nobody has met for so long is looked at: at the bound it fills and drains with every job. A share is
# looked at less often, because a shared store counts its jobs.
LOOK_SECONDS = 1.0
LOOK_AT_SHARE_SECONDS = 5.0
MAX_NAMED = 1000  # of shares of keys; there may be as many as keys


class FullBounds:
    def __init__(self, clock: Clock, capacity: Capacity) -> None:
        self._clock = clock
        self._capacity = capacity
        self._met: dict[str, tuple[Full, float]] = {}

    def note(self, full: Full) -> None:
        """Somebody was refused, or has to wait."""
        if full.line not in self._met:
            if len(self._met) >= MAX_NAMED:
                return
            log.warning("bound_full", **_facts(full), note=f"{full.refusal(self._capacity)}")
        self._met[full.line] = (full, self._clock.monotonic())

    def quiet(self, waiting: Container[str]) -> list[Full]:
        """Return the bounds that nobody has met lately; only a look shows whether they are still full."""
        now = self._clock.monotonic()
        return [
            full
            for line, (full, met_at) in self._met.items()
            if now - met_at >= _look_seconds(full) and line not in waiting
        ]

    def looked_at(self, full: Full, *, is_full: bool) -> None:
        if is_full:
            self._met[full.line] = (full, self._clock.monotonic())
        elif self._met.pop(full.line, None) is not None:
            log.info("bound_drained", **_facts(full))

    def reasons(self) -> list[str]:
        """Why new work is refused or waits, in words. Everybody may ask, so keys are counted and not named."""
        met = [full for full, _ in self._met.values()]
        keys = Counter(full.kind for full in met if full.key is not None)
        return [str(full.refusal(self._capacity)) for full in met if full.key is None] + [
            f"{number} key{'s' if number > 1 else ''} of {kind} with a full share of jobs waiting; new ones are refused"
            for kind, number in keys.items()
        ]


def _look_seconds(full: Full) -> float:
    return LOOK_SECONDS if full.key is None else LOOK_AT_SHARE_SECONDS


def _facts(full: Full) -> dict[str, str]:
    bound = "share" if full.key is not None else "live" if full.live else "active"
    return {"kind": full.kind, "bound": bound} | ({} if full.key is None else {"destination": mask_text(full.key)})
