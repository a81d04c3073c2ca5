"""Lines of numbers as paths: the overview's chart and its sparklines. x is stretched, y is in pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

WIDE, TALL, SPARK_WIDE, SPARK_TALL = 900, 228, 100, 24
SECONDS, MIN_SECONDS, TOP = 900, 60, 38
STEPS = (1, 2, 2.5, 5, 10)  # console.js has the same


def spark(values: Sequence[float]) -> str:
    """From zero, so that a flat line is flat."""
    if len(values) < 2:
        return ""
    top = max(1.0, *values)
    step = SPARK_WIDE / (len(values) - 1)
    points = (
        f"{place * step:.1f} {SPARK_TALL - 1 - value / top * (SPARK_TALL - 3):.1f}"
        for place, value in enumerate(values)
    )
    return "M" + "L".join(points)


def flow(
    history: Sequence[Sequence[float]], incidents: Sequence[Mapping[str, Any]], now: datetime, zone: tzinfo
) -> dict[str, Any]:
    """Accepted and done per second over what is known of 15 minutes, with round figures at the axis."""
    step = nice(max([1.0, *(max(accepted, done) for _, accepted, done in history)]) / 3)
    end = now.timestamp()
    seconds = min(max(end - history[0][0], MIN_SECONDS), SECONDS) if history else SECONDS

    def x(at: float) -> str:
        return f"{max(WIDE - (end - at) / seconds * WIDE, 0):.1f}"

    def line(column: int) -> str:
        return "L".join(f"{x(one[0])} {TALL - one[column] / (step * 3) * (TALL - TOP):.1f}" for one in history)

    moment = "%H:%M" if seconds == SECONDS else "%H:%M:%S"
    return {
        "accepted": f"M{line(1)}" if history else "",
        "done": f"M{line(2)}" if history else "",
        "area": f"M{x(history[0][0])} {TALL}L{line(2)}L{x(history[-1][0])} {TALL}Z" if history else "",
        "notes": [
            (round(100 - (end - one["at"] / 1000) / seconds * 100, 2), one["destination"])
            for one in incidents
            if end - one["at"] / 1000 <= seconds
        ],
        "lines": [(step * n, TALL - n / 3 * (TALL - TOP)) for n in (1, 2, 3)],
        "times": [
            (
                f"{n * 100 / 3:.2f}%",
                (now - timedelta(seconds=seconds * (3 - n) / 3)).astimezone(zone).strftime(moment),
                anchor,
            )
            for n, anchor in ((0, "start"), (1, "middle"), (2, "middle"), (3, "end"))
        ],
    }


def nice(value: float) -> float:
    """1, 2, 2.5 or 5 times a power of ten, the next above a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in STEPS if factor * power >= value * 0.999)
