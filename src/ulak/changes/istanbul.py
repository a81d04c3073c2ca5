"""Stamps as the wire shows them: whole seconds of Europe/Istanbul, written without a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from ulak.clock import to_datetime, to_millis
from ulak.errors import Invalid

ISTANBUL = ZoneInfo("Europe/Istanbul")
# A plus that was not encoded arrives as a blank.
_FORM = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:(Z)|([+ -])(\d\d):?(\d\d))?", re.ASCII)
_WANTED = "must be a time like 2026-02-19T10:00:00 (Europe/Istanbul; an offset such as +03:00 counts)"


@lru_cache(1024)  # a page of 1,000 changes has few stamps
def shown(stamp: int) -> str:
    return to_datetime(stamp * 1000).astimezone(ISTANBUL).strftime("%Y-%m-%dT%H:%M:%S")


def parse(name: str, text: str) -> int:
    """A parameter as seconds since 1970, fractions cut off; Invalid names the parameter."""
    found = _FORM.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError(text)
        day, time, utc, sign, hours, minutes = found.groups()
        moment = datetime.fromisoformat(f"{day}T{time}")
        if utc:
            aware = moment.replace(tzinfo=UTC)
        elif sign:
            aware = datetime.fromisoformat(f"{day}T{time}{'-' if sign == '-' else '+'}{hours}:{minutes}")
        else:
            aware = moment.replace(tzinfo=ISTANBUL)
        return to_millis(aware) // 1000
    except (ValueError, OverflowError) as error:
        raise Invalid(f"{name} {_WANTED}", fields=[(name, _WANTED)]) from error
