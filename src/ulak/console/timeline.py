"""A job's timeline as a drawing: waits outlined, attempts solid, what nobody knows hatched; on one axis of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from ulak.console.format import instant

_WAITS = {"accepted", "retried", "snoozed", "released", "uncertain", "redriven"}
_ENDS = {"done", "cancelled", "expired", "dead", "failed", "held"}


@dataclass(frozen=True, slots=True)
class Bar:
    """`x` and `width` are per cent of the axis."""

    form: str
    label: str
    x: float
    width: float
    row: int


@dataclass(frozen=True, slots=True)
class Drawing:
    bars: list[Bar]
    begins: datetime
    ends: datetime
    rows: int

    @property
    def seconds(self) -> float:
        return (self.ends - self.begins).total_seconds()


def draw_timeline(document: dict[str, Any]) -> Drawing | None:
    """None for a document without a timeline of instants."""
    steps = [
        (at, str(step.get("word") or step.get("what") or ""), int(step.get("attempt") or 0))
        for step in document.get("timeline") or []
        if isinstance(step, dict) and (at := instant(step.get("at"))) is not None
    ]
    if len(steps) < 2:
        return None
    begins, ends = steps[0][0], steps[-1][0]
    whole = max((ends - begins).total_seconds(), 0.001)
    bars = []
    for (at, what, attempt), (until, following, _) in pairwise(steps):
        x, width = (at - begins).total_seconds() / whole * 100, max((until - at).total_seconds() / whole * 100, 0.3)
        if what == "started":
            form = "unknown" if following == "uncertain" else "bad" if following in {"retried", "dead"} else "known"
            bars.append(Bar(form, f"{attempt}", x, min(width, 100 - x), attempt))
        elif what in _WAITS:
            bars.append(Bar("wait", what, x, min(width, 100 - x), 0))
    return Drawing(bars, begins, ends, max((bar.row for bar in bars), default=0) + 1)
