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

# A bound has drained when nobody has met it for so long: at the bound it fills and drains with every job.
DRAINED_SECONDS = 1.0
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

    def look(self, waiting: Container[str]) -> None:
        """Forget those that nobody has met lately."""
        earliest = self._clock.monotonic() - DRAINED_SECONDS
        for line, (full, met_at) in list(self._met.items()):
            if met_at <= earliest and line not in waiting:
                del self._met[line]
                log.info("bound_drained", **_facts(full))

    def reasons(self) -> list[str]:
        """Why new work is refused or waits, in words. Everybody may ask, so keys are counted and not named."""
        met = [full for full, _ in self._met.values()]
        keys = Counter(full.kind for full in met if full.key is not None)
        return [str(full.refusal(self._capacity)) for full in met if full.key is None] + [
            f"{number} keys of {kind} have their share of jobs waiting; new ones for them are refused"
            for kind, number in keys.items()
        ]


def _facts(full: Full) -> dict[str, str]:
    bound = "share" if full.key is not None else "live" if full.live else "active"
    return {"kind": full.kind, "bound": bound} | ({} if full.key is None else {"destination": mask_text(full.key)})
