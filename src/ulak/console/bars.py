"""Bars of syncs: added, modified and removed one upon the other, the newest at the right. The list has the numbers."""

from __future__ import annotations

from statistics import median
from typing import Any

from ulak.console.feed import SIGNS
from ulak.console.page import Found, Row

TALL, BASE = 58, 77
PLACES = 24  # fewer syncs are not wider for that
MAX_TIMES = 8  # a sync with so many times the usual number is cut off, or nobody would see the others


def numbers_of(sync: Row) -> dict[str, int]:
    """Changes that a sync published, over all of its feeds."""
    feeds = (sync.get("feeds") or {}).values()
    return {name: sum(feed.get(name, 0) for feed in feeds) for name in (*SIGNS, "withheld")}


def draw_syncs(syncs: list[Row], found: Found) -> dict[str, Any] | None:
    """None for fewer than two: there is nothing to compare."""
    if len(syncs) < 2:
        return None
    totals = [[numbers_of(one)[name] for name in SIGNS] for one in reversed(syncs)]
    sizes = [sum(one) for one in totals]
    usual = median([size for size in sizes if size] or [1])
    top = max(1, *(size for size in sizes if size <= usual * MAX_TIMES))
    held = [one["verdict"] == "quarantined" for one in reversed(syncs)]
    width = 100 / max(len(syncs), PLACES)
    begin = 100 - len(syncs) * width
    bars = [
        _bar(begin + place * width, width, *one, top, found) for place, one in enumerate(zip(totals, held, strict=True))
    ]
    lasting = found.say("Changes per sync, the newest last: {numbers}", numbers=", ".join(map(found.say.number, sizes)))
    return {"bars": bars, "label": lasting, "key": [*SIGNS.items()]}


def _bar(x: float, width: float, numbers: list[int], held: bool, top: int, found: Found) -> dict[str, Any]:
    """Cut off at the top where it would not fit, and says its number then."""
    say, size = found.say, sum(numbers)
    note = ""
    if held:
        note = say("held back")
    elif size > top:
        note = say("{n}, not drawn to scale", n=size)
    scale = TALL / max(top, size)
    parts, y = [], float(BASE)
    for name, number in zip(SIGNS, numbers, strict=True):
        y -= number * scale
        parts.append({"name": name, "y": round(y, 1), "tall": round(number * scale, 1)})
    if held:
        parts = [{"name": "hold", "y": BASE - TALL, "tall": TALL}]
    left = x < 50
    return {
        "x": round(x + width * 0.1, 2), "width": round(width * 0.8, 2), "parts": parts, "note": note,
        "note_x": round(x + width * (0.1 if left else 0.9), 2), "anchor": "start" if left else "end",
    }  # fmt: skip
