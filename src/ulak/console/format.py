"""Instants and states as people read them, by language and time zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from ulak.console.words import Say

# Whose turn it is decides the hue, and the shape names the state.
_STATES_OF = {
    "ready": "waiting accepted idle closed none pending unchanged next then",
    "deferred": "scheduled retrying retried snoozed released",
    "behind": "",
    "running": "sending searching offered assigned busy started asked",
    "suspect": "withheld unhandled open half-open failing",
    "uncertain": "partial",
    "held": "quarantined paused",
    "done": "delivered success completed acknowledged sent handed_over published approved ended answers",
    "dead": "failed timed_out refused crashed",
    "cancelled": "inactive skipped stopped rejected declined withdrawn",
    "expired": "silent",
}
HUES = {word: hue for hue, words in _STATES_OF.items() for word in (hue, *words.split())}


def hue(state: Any) -> str:
    return HUES.get(str(state).lower(), "ready")


def instant(value: Any) -> datetime | None:
    """From a wire's instant: text with a zone, or milliseconds."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def ago(at: datetime, now: datetime, zone: tzinfo, say: Say) -> str:
    """Relative under an hour, then the time of day, then the date."""
    if at.tzinfo is None:
        return f"{say.date(at)} {at:%H:%M:%S}"
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return say("just now")
    if abs(seconds) < 3600:
        return say("{time} ago" if seconds > 0 else "in {time}", time=say.seconds(float(int(abs(seconds)))))
    here = at.astimezone(zone)
    return f"{here:%H:%M:%S}" if abs(seconds) < 86_400 else f"{say.date(here)} {here:%H:%M}"


def clock_time(at: datetime, zone: tzinfo) -> str:
    """To the millisecond, as timelines have it."""
    return at.astimezone(zone).strftime("%H:%M:%S.%f")[:-3]


def left(seconds: float) -> str:
    """m:ss of a deadline."""
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"
