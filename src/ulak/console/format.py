"""Numbers, instants and states as people read them, by language."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ulak.console.words import word

# Whose turn it is decides the hue, and the shape names the state.
HUES = {
    "ready": "ready",
    "deferred": "deferred",
    "behind": "behind",
    "running": "running",
    "suspect": "suspect",
    "uncertain": "uncertain",
    "held": "held",
    "done": "done",
    "dead": "dead",
    "cancelled": "cancelled",
    "expired": "expired",
    "scheduled": "deferred",
    "waiting": "ready",
    "sending": "running",
    "retrying": "deferred",
    "delivered": "done",
    "failed": "dead",
    "accepted": "ready",
    "open": "uncertain",
    "half-open": "uncertain",
    "success": "done",
    "partial": "uncertain",
    "quarantined": "held",
    "searching": "running",
    "offered": "running",
    "assigned": "done",
    "completed": "done",
    "timed_out": "dead",
    "idle": "ready",
    "busy": "running",
    "paused": "held",
    "inactive": "cancelled",
    "acknowledged": "done",
    "sent": "done",
    "skipped": "cancelled",
    "handed_over": "done",
    "published": "done",
    "unchanged": "done",
    "withheld": "uncertain",
    "refused": "dead",
}


def number(value: float, language: str) -> str:
    text = f"{value:,.0f}" if isinstance(value, int) or float(value).is_integer() else f"{value:,.2f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "tr" else text


def percent(value: float, language: str) -> str:
    text = number(round(value * 100, 1), language)
    return f"%{text}" if language == "tr" else f"{text} %"


def instant(value: Any) -> datetime | None:
    """From a wire's instant: text with a zone, or milliseconds."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def ago(value: Any, now: datetime, language: str) -> str:
    """Relative under an hour, then the time of day, then the date."""
    at = instant(value)
    if at is None:
        return str(value)
    if at.tzinfo is None:
        return at.strftime("%Y-%m-%d %H:%M:%S")
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return word("just now", language)
    if 0 < seconds < 60:
        return f"{seconds:.0f} {word('s ago', language)}"
    if 0 < seconds < 3600:
        return f"{seconds / 60:.0f} {word('min ago', language)}"
    if -3600 < seconds < 0:
        left = f"{-seconds:.0f} s" if seconds > -60 else f"{-seconds / 60:.0f} min"
        return f"{left} {word('in', language)}" if language == "tr" else f"in {left}"
    return at.strftime("%H:%M:%S" if abs(seconds) < 86_400 else "%Y-%m-%d %H:%M")


def hue(state: Any) -> str:
    return HUES.get(str(state).lower(), "ready")
