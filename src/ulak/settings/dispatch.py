"""Settings of the dispatch room: how it searches, ranks, offers and waits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ulak.settings.section import Section, TimeZone


class Dispatch(Section):
    """Finding the right helper and offering tasks one after another."""

    radius_meters: float = Field(1000, ge=1, le=20_100_000, description="How far from a task helpers are looked for.")
    max_radius_meters: float = Field(50_000, ge=1, le=20_100_000, description="Largest radius that a task may ask for.")
    deadline_seconds: float = Field(600, ge=1, le=86_400, description="How long a helper may take to answer an offer.")
    width: int = Field(1, ge=1, le=50, description="How many helpers are asked at once; the first to accept wins.")
    candidates_seconds: float = Field(
        3600, ge=1, le=604_800, description="How long a list of candidates counts; an older one is used up."
    )
    max_candidates: int = Field(1000, ge=1, le=10_000, description="Most candidates that one search keeps.")
    searches: int = Field(
        2, ge=1, le=10, description="How often a task searches: again when its list is used up, for newcomers."
    )
    radius_growth: float = Field(1, ge=1, le=10, description="How many times wider each further search looks.")
    ranking: Literal["repaired", "seed"] = Field(
        "repaired",
        description="seed: fewest completed this month, nearest, id. repaired: an expired offer counts like a "
        "completion, and helpers who let several expire in a row are paused.",
    )
    pause_after_timeouts: int = Field(
        3, ge=1, le=1000, description='Expired offers in a row that pause a helper, with ranking = "repaired".'
    )
    exhausted_status: Literal["TIMED_OUT", "CANCELLED"] = Field(
        "TIMED_OUT", description="What becomes of a task that nobody has accepted."
    )
    on_undelivered: Literal["wait", "advance"] = Field(
        "wait",
        description="When a helper could not be told of an offer: wait for the deadline, or ask the next at once.",
    )
    capacity: int = Field(100_000, ge=1, le=100_000_000, description="Most unfinished tasks; beyond it 429.")
    history_days: float = Field(90, gt=0, le=36_500, description="How long ended tasks and their offers are kept.")
    position_max_age_seconds: float = Field(
        86_400, ge=1, le=31_536_000, description="A helper whose position is older is not asked."
    )
    position_flush_seconds: float = Field(
        1, ge=0.01, le=60, description="How often positions that were sent in bulk are written."
    )
    time_zone: TimeZone = Field(
        "Europe/Istanbul", description="Where a month begins, for the count of completed tasks."
    )
    language: Literal["tr", "en"] = Field("tr", description="Language of messages when nobody has chosen one.")
