"""Service levels: the document's four targets, how well they are met, and how fast their budgets burn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ulak.actions.model import REACHED, StepState

P95_SECONDS = 5.0
SUCCESS_RATE = 0.99
DLQ_RATE = 0.005
CRITICAL_EXHAUSTED_RATE = 0.001
UNDELIVERED = "undelivered"  # sent, and then the provider said that it did not arrive
SLOW_SHARE = 0.05  # a p95 leaves a twentieth of all to be slower


class Ended(NamedTuple):
    """How many steps ended alike."""

    channel_type: str
    route_id: int | None
    critical: bool
    state: str
    reason: str | None
    seconds: float
    number: int


@dataclass(slots=True)
class Levels:
    """The counts of some steps."""

    times: dict[float, int] = field(default_factory=dict)
    reached: int = 0
    undelivered: int = 0
    dead: int = 0
    critical: int = 0
    critical_exhausted: int = 0

    @property
    def total(self) -> int:
        return self.reached + self.undelivered + self.dead

    def add(self, ended: Ended) -> None:
        if ended.state == StepState.SKIPPED:
            return
        if ended.state in REACHED:
            self.reached += ended.number
            self.times[ended.seconds] = self.times.get(ended.seconds, 0) + ended.number
        elif ended.state == UNDELIVERED:
            self.undelivered += ended.number
        else:
            self.dead += ended.number
        if ended.critical:
            self.critical += ended.number
            if ended.reason == "retry_exhausted":
                self.critical_exhausted += ended.number

    def p95_seconds(self) -> float | None:
        wanted, seen = 0.95 * self.reached, 0
        for seconds in sorted(self.times):
            seen += self.times[seconds]
            if seen >= wanted:
                return seconds
        return None

    def burns(self) -> dict[str, float]:
        """Share of each budget that is used up: 1 is all of it."""
        slow = sum(number for seconds, number in self.times.items() if seconds >= P95_SECONDS)
        return {
            "p95_end_to_end_seconds": _share(slow, self.reached) / SLOW_SHARE,
            "success_rate": _share(self.undelivered + self.dead, self.total) / (1 - SUCCESS_RATE),
            "dlq_rate": _share(self.dead, self.total) / DLQ_RATE,
            "critical_retry_exhausted_rate": _share(self.critical_exhausted, self.critical) / CRITICAL_EXHAUSTED_RATE,
        }

    def report(self) -> dict[str, Any]:
        """Value, target and what is left of the budget, for each of the four."""
        p95, burns = self.p95_seconds(), self.burns()
        values: dict[str, tuple[float | None, float]] = {
            "p95_end_to_end_seconds": (p95, P95_SECONDS),
            "success_rate": (_share(self.reached, self.total) if self.total else 1.0, SUCCESS_RATE),
            "dlq_rate": (_share(self.dead, self.total), DLQ_RATE),
            "critical_retry_exhausted_rate": (
                _share(self.critical_exhausted, self.critical),
                CRITICAL_EXHAUSTED_RATE,
            ),
        }
        return {
            name: {"value": value, "target": target, "budget_left": round(1 - burns[name], 6)}
            for name, (value, target) in values.items()
        }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def report(found: Iterable[Ended]) -> dict[str, Any]:
    """All together, then by route and by channel."""
    whole, routes, channels = Levels(), dict[str, Levels](), dict[str, Levels]()
    for ended in found:
        whole.add(ended)
        channels.setdefault(ended.channel_type, Levels()).add(ended)
        if ended.route_id is not None:
            routes.setdefault(str(ended.route_id), Levels()).add(ended)
    return {
        **whole.report(),
        "routes": {name: levels.report() for name, levels in sorted(routes.items())},
        "channels": {name: levels.report() for name, levels in sorted(channels.items())},
    }
