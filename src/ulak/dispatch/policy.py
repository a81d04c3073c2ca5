"""The rules that dispatch decides by, as values: from the settings, or from what a simulation tries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ulak.clock import to_datetime
from ulak.dispatch.model import TaskState

if TYPE_CHECKING:
    from ulak.settings.dispatch import Dispatch as Section

NEVER = 1 << 40  # more timeouts in a row than anybody has
HOUR_MILLIS = 3_600_000
QUARTER_MILLIS = 900_000


@dataclass(frozen=True, slots=True)
class Policy:
    """`expiry_weight` is what an expired offer counts beside a completion; `pause_after` how many in a row pause."""

    expiry_weight: int = 1
    pause_after: int = 3
    searches: int = 2
    radius_growth: float = 1.0
    max_radius: float = 50_000.0
    candidates_millis: int = HOUR_MILLIS
    max_candidates: int = 1000
    position_millis: int = 24 * HOUR_MILLIS
    exhausted: TaskState = TaskState.TIMED_OUT
    time_zone: str = "Europe/Istanbul"
    language: str = "tr"
    tells_undelivered: bool = False

    @classmethod
    def of(cls, section: Section) -> Policy:
        repaired = section.ranking == "repaired"
        return cls(
            expiry_weight=1 if repaired else 0,
            pause_after=section.pause_after_timeouts if repaired else NEVER,
            searches=section.searches,
            radius_growth=section.radius_growth,
            max_radius=section.max_radius_meters,
            candidates_millis=round(section.candidates_seconds * 1000),
            max_candidates=section.max_candidates,
            position_millis=round(section.position_max_age_seconds * 1000),
            exhausted=TaskState(section.exhausted_status),
            time_zone=section.time_zone,
            language=section.language,
            tells_undelivered=section.on_undelivered == "advance",
        )

    def month(self, now: int) -> int:
        """A number for the month that it is where the helpers are."""
        return _month(self.time_zone, now // QUARTER_MILLIS)

    def radius_of(self, first: float, search: int) -> float:
        """How far the given search looks, the first being 0."""
        return min(first * self.radius_growth**search, max(self.max_radius, first))


@lru_cache(maxsize=256)
def _month(time_zone: str, quarter: int) -> int:
    """Every zone is a whole number of quarters of an hour from UTC, so no month begins within one."""
    local = to_datetime(quarter * QUARTER_MILLIS).astimezone(ZoneInfo(time_zone))
    return local.year * 12 + local.month
