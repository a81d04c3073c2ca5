"""A job's timeline as a drawing: waits outlined, attempts solid, what nobody knows hatched; on one axis of time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from ulak.console.format import clock_time, instant
from ulak.console.page import Found
from ulak.console.words import Say

LANE, FIRST = 46, 38
LABEL_WIDTH = 16  # per cent that a label takes
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
DAY_SECONDS = 86_400
_WAITS = {"accepted": "ready", "retried": "deferred", "snoozed": "deferred", "released": "ready", "redriven": "ready"}
_TASK_ENDS = frozenset({"completed", "cancelled", "timed_out"})
_ANSWERS = {"accepted": "done", "completed": "done", "rejected": "cancelled", "expired": "expired",
            "withdrawn": "cancelled", "cancelled": "cancelled", "timed_out": "dead"}  # fmt: skip
_ENDINGS = {"retried": "dead", "dead": "dead", "failed": "dead", "uncertain": "uncertain", "done": "done"}


@dataclass(frozen=True, slots=True)
class Bar:
    """`x` and `width` are per cent of the axis; the label stands beside the bar, or above it."""

    hue: str
    label_hue: str
    form: str
    x: float
    width: float
    label: str
    side: str = "right"

    @property
    def end(self) -> float:
        return self.x + self.width

    @property
    def label_x(self) -> float:
        return self.x if self.side == "left" else self.end


@dataclass(frozen=True, slots=True)
class TimelineRow:
    name: str
    y: int
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    lanes: list[TimelineRow]
    ticks: list[tuple[float, str, str]]  # where in per cent, its text, its anchor
    height: int
    told: str
    legend: list[tuple[str, str]]  # a hue and its word


def draw_timeline(timeline: Sequence[Mapping[str, Any]] | None, found: Found) -> TimelineDrawing | None:
    """None for a job of which only one moment is known."""
    begins, steps = _since_the_first(timeline)
    if begins is None:
        return None
    moments = [(seconds, word_of(step), int(step.get("attempt") or 0)) for seconds, step in steps]
    if moments[-1][1] in {"accepted", "started", "retried", "snoozed", "released", "uncertain", "redriven"}:
        moments.append(((found.now - begins).total_seconds(), "", 0))  # it is not over: up to now
    if len(moments) < 2:
        return None
    whole, step = _axis(max(moments[-1][0], 0.001))
    told = ", ".join(f"{found.say(word)} {found.say.offset(seconds)}" for seconds, word, _ in moments if word)
    say = found.say
    legend = [("running", say("running")), ("deferred", say("waits")), ("uncertain", say("hatched: nobody knows"))]
    return _assembled(_lanes(moments, whole, say), begins, whole, step, told, legend, found)


def draw_offers(
    timeline: Sequence[Mapping[str, Any]] | None, names: Mapping[str, str], found: Found
) -> TimelineDrawing | None:
    """A task's life: a lane for each helper who was asked, from the offer to the answer, and from there to the end."""
    begins, steps = _since_the_first(timeline)
    if begins is None:
        return None
    moments = [(seconds, word_of(step), str(step.get("helperId") or "")) for seconds, step in steps]
    if moments[-1][1] not in _TASK_ENDS:
        moments.append(((found.now - begins).total_seconds(), "", ""))  # it is not over: up to now
    whole, step = _axis(max(moments[-1][0], 0.001))
    bars: dict[str, list[Bar]] = {}
    for place, (at, word, helper) in enumerate(moments):
        if helper and word in {"offered", "accepted"}:
            until, answer = _answer(moments[place + 1 :], helper)
            bars.setdefault(helper, []).append(_offer_bar(word, answer, at, until, whole, found.say))
    lanes = [
        TimelineRow(names.get(helper, helper), FIRST + LANE * place, labelled(all_))
        for place, (helper, all_) in enumerate(bars.items())
    ]
    told = ", ".join(
        f"{found.say(word)}{who and ' '}{names.get(who, who)} {found.say.offset(seconds)}"
        for seconds, word, who in moments
        if word
    )
    legend = [("ready", found.say("outlined: asked")), ("running", found.say("solid: helps"))]
    return _assembled(lanes, begins, whole, step, told, legend, found) if lanes else None


def _answer(later: Sequence[tuple[float, str, str]], helper: str) -> tuple[float, str]:
    """When a helper answered, or the task ended, and with which word; at the last moment without one."""
    fits = ((at, word) for at, word, who in later if who == helper or word in _TASK_ENDS)
    return next(fits, (later[-1][0] if later else 0.0, ""))


def _offer_bar(word: str, answer: str, at: float, until: float, whole: float, say: Say) -> Bar:
    """Outlined while somebody is asked, solid while somebody helps."""
    hue = _ANSWERS.get(answer, "running")
    label = say("{word} after {time}", word=say(answer), time=say.seconds(until - at)) if answer else say(word)
    form = "soft-bar" if word == "offered" else "bar-of"
    return Bar(hue, hue, form, at / whole * 100, max((until - at) / whole * 100, 0.4), label)


def _since_the_first(
    timeline: Sequence[Mapping[str, Any]] | None,
) -> tuple[datetime | None, list[tuple[float, Mapping[str, Any]]]]:
    """The first moment, and each step with its seconds since then."""
    steps = [(at, step) for step in timeline or () if (at := instant(step.get("at"))) is not None]
    begins = steps[0][0] if steps else None
    return begins, [((at - begins).total_seconds(), step) for at, step in steps if begins is not None]


def _assembled(
    lanes: list[TimelineRow],
    begins: datetime,
    whole: float,
    step: float,
    told: str,
    legend: list[tuple[str, str]],
    found: Found,
) -> TimelineDrawing:
    ticks = [
        (
            place / whole * 100,
            clock_time(begins, found.zone)[:8] if place == 0 else f"+{found.say.seconds(place)}",
            _anchor(place, whole),
        )
        for place in (number * step for number in range(round(whole / step) + 1))
    ]
    return TimelineDrawing(lanes, ticks, FIRST + LANE * len(lanes), told, legend)


def word_of(step: Mapping[str, Any]) -> str:
    return str(step.get("word") or step.get("what") or "")


def took(job: Mapping[str, Any], *, whole: bool = False) -> float | None:
    """Seconds of the last attempt; whole: from accept to end."""
    begin, end = instant(job.get("acceptedAt" if whole else "startedAt") or ""), instant(job.get("settledAt") or "")
    return None if begin is None or end is None else max((end - begin).total_seconds(), 0.0)


def _lanes(moments: list[tuple[float, str, int]], whole: float, say: Say) -> list[TimelineRow]:
    waits: list[Bar] = []
    attempts: dict[int, list[Bar]] = {}
    for (at, word, attempt), (until, following, _) in pairwise(moments):
        seconds = until - at
        x, width = at / whole * 100, max(seconds / whole * 100, 0.4)
        if word == "started":
            hue = _ENDINGS.get(following, "running")
            text = (
                say("{word} after {time}", word=say(following), time=say.seconds(seconds))
                if following
                else say("running")
            )
            form = "hatch-bar" if hue == "uncertain" else "bar-of"
            attempts.setdefault(attempt, []).append(Bar("running" if hue == "dead" else hue, hue, form, x, width, text))
        elif word in _WAITS or word == "uncertain":
            state = "suspect" if word == "uncertain" else _WAITS[word]
            if width > 0.6:  # a wait that nobody sees is left to the table
                waits.append(Bar(state, state, "soft-bar", x, width, f"{say(state)} {say.seconds(seconds)}"))
    rows = [(say("Waits"), waits)] if waits else []
    rows += [(say("Attempt {n}", n=number), bars) for number, bars in sorted(attempts.items())]
    return [TimelineRow(name, FIRST + LANE * place, labelled(bars)) for place, (name, bars) in enumerate(rows)]


def labelled(bars: Sequence[Bar]) -> list[Bar]:
    """Each label to the right of its bar, to the left or above, where it covers no other bar; else the table has it."""
    ends = [0.0, *(bar.end for bar in bars)]
    starts = [*(bar.x for bar in bars[1:]), 100.0]
    return [
        replace(bar, side=side) if side else replace(bar, label="")
        for bar, before, after in zip(bars, ends[:-1], starts, strict=True)
        for side in [_side(bar, before, after)]
    ]


def _side(bar: Bar, before: float, after: float) -> str:
    if bar.end < 62 and after - bar.end >= LABEL_WIDTH:
        return "right"
    if bar.x > 38 and bar.x - before >= LABEL_WIDTH:
        return "left"
    return "above" if bar.width >= LABEL_WIDTH and bar.end >= 1.5 * LABEL_WIDTH else ""


def _axis(seconds: float) -> tuple[float, float]:
    """The whole axis and the seconds between two of its lines: round figures, seven lines at most."""
    step: float = next((one for one in STEPS if seconds / one <= 7), DAY_SECONDS)
    if step == DAY_SECONDS:
        step = DAY_SECONDS * math.ceil(seconds / 7 / DAY_SECONDS)
    return max(math.ceil(round(seconds / step, 6)), 1) * step, step


def _anchor(place: float, whole: float) -> str:
    return "start" if place == 0 else "end" if place >= whole * 0.999 else "middle"
