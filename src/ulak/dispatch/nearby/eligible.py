"""Eligible helpers, and their order: the one rule that searches, offers and simulations share."""

from __future__ import annotations

from collections.abc import Collection

from ulak.dispatch.model import BUSY, OFFERED, Candidate, Helper
from ulak.dispatch.nearby.geo import Point, squared_chord
from ulak.dispatch.policy import Policy

# Why somebody within the circle is left out: the first that fits. search_circle.sql says the same.
REASONS = ("inactive", "busy", "offered", "paused", "stale", "skills", "asked")


def obstacle(helper: Helper, skills: Collection[str], asked: Collection[int], now: int, policy: Policy) -> str | None:
    """Why a helper can't be asked, whatever the distance; None when nothing is in the way."""
    if not helper.active:
        return "inactive"
    if helper.doing == BUSY:
        return "busy"
    if helper.doing == OFFERED:
        return "offered"
    if helper.timeouts >= policy.pause_after:
        return "paused"
    if helper.position_at is None or helper.position_at < now - policy.position_millis:
        return "stale"
    if not set(skills) <= set(helper.skills):
        return "skills"
    return "asked" if helper.id in asked else None


def load_of(helper: Helper, month: int, policy: Policy) -> int:
    """Return a helper's load of this month: completions and, by the repaired rule, offers that it let expire."""
    return helper.completed + policy.expiry_weight * helper.expired if helper.month == month else 0


def to_candidate(helper: Helper, centre: Point, month: int, policy: Policy) -> Candidate:
    assert helper.point is not None
    chord = squared_chord(centre.vector, helper.point.vector)
    load = load_of(helper, month, policy)
    return Candidate(helper.id, helper.helper, chord, load, helper.completed_in(month), helper.timeouts)


def rank(candidate: Candidate) -> tuple[int, int, str]:
    """Fewest this month, then nearest, then by id."""
    return candidate.load, candidate.chord, candidate.helper


def standing(candidate: Candidate, before: Candidate | None) -> str:
    """By what a candidate stands behind the one before it."""
    if before is None:
        return "first"
    if candidate.load != before.load:
        return "completed"
    return "distance" if candidate.chord != before.chord else "id"
