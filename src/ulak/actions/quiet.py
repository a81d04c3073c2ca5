"""Quiet hours: when a person is not to be disturbed, by the clock on that person's wall, summer time and all."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ulak.clock import to_datetime, to_millis

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
HOURS_FORM = "must be like 22:00-07:00"


@lru_cache(maxsize=1024)
def parse_hours(text: str) -> tuple[time, time] | None:
    """From, to; None when the text is not like 22:00-07:00, or the two are the same."""
    found = _HOURS.fullmatch(text)
    if found is None:
        return None
    first, last, then, end = map(int, found.groups())
    begins, ends = time(first, last), time(then, end)
    return None if begins == ends else (begins, ends)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def quiet_until(now: int, hours: str | None, zone_name: str | None) -> int | None:
    """When the quiet hours end that hold now; None when none do."""
    found = None if not hours else parse_hours(hours)
    if found is None:
        return None
    zone = zone_of(zone_name or "UTC") or ZoneInfo("UTC")
    begins, ends = found
    local = to_datetime(now).astimezone(zone)
    wall = local.time().replace(tzinfo=None)
    over_midnight = begins > ends
    inside = (wall >= begins or wall < ends) if over_midnight else begins <= wall < ends
    if not inside:
        return None
    day = local.date() + timedelta(days=1 if over_midnight and wall >= begins else 0)
    end = to_millis(datetime.combine(day, ends, tzinfo=zone).astimezone(UTC))
    return end if end > now else now + 60_000  # the hour that is there twice: look again in a minute
