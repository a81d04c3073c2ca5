"""Pure decisions: guards, stamps, windows, pages, and when a place in the log is gone. No clock and no store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ulak.changes.model import Cursor, Feed, gone
from ulak.changes.pipeline.differ import FeedDelta
from ulak.errors import Invalid

DAY_SECONDS = 86_400
MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The guards' settings. `ceiling`: somebody has approved up to so many changes that a guard held back."""

    removal_percent: float = 10
    removal_floor: int = 0
    guard_floor: int = 100
    modified_percent: float = 50
    alias_loss_percent: float = 10
    count_percent: float = 50
    ceiling: int | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """By guard, in per cent."""
        return {
            "removed": self.removal_percent,
            "modified": self.modified_percent,
            "aliases": self.alias_loss_percent,
            "count": self.count_percent,
        }


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """Which feeds keep their removals back, why the whole list is put into quarantine, and the guards' values."""

    withheld: frozenset[str] = frozenset()
    quarantine: str | None = None
    values: Mapping[tuple[str, str], float] = field(default_factory=dict)


def judge(feeds: Mapping[str, Feed], deltas: Mapping[str, FeedDelta], limits: GuardLimits) -> GuardVerdict:
    values = {
        (name, guard): value
        for name, delta in deltas.items()
        for guard, value in guard_values(feeds[name], delta).items()
    }
    if limits.ceiling is not None:
        return GuardVerdict(values=values)
    withheld = frozenset(
        name
        for name, delta in deltas.items()
        if delta.removed > limits.removal_floor and values[name, "removed"] > limits.removal_percent
    )
    reasons = [
        f"{name}: {why} by {values[name, guard]:.1f} %, more than {limits.bounds[guard]:g} %"
        for name in deltas
        if feeds[name].count >= max(limits.guard_floor, 1)
        for guard, why in _QUARANTINES.items()
        if values[name, guard] > limits.bounds[guard]
    ]
    return GuardVerdict(withheld, "; ".join(reasons) or None, values)


_QUARANTINES = {
    "modified": "records would be modified",
    "aliases": "users who stay would lose aliases of a role",
    "count": "the number of records would change",
}


def guard_values(feed: Feed, delta: FeedDelta) -> dict[str, float]:
    """Each in per cent of what is published now."""
    present = max(feed.count, 1)
    lost = (100 * number / max(feed.aliases.get(role, 0), 1) for role, number in delta.lost_aliases.items())
    return {
        "removed": 100 * delta.removed / present,
        "modified": 100 * delta.modified / present,
        "aliases": max(lost, default=0.0),
        "count": 100 * abs(delta.added - delta.removed) / present,
    }


def is_swapped(feed: Feed, delta: FeedDelta) -> bool:
    """Most users were modified, and most of these had an alias of one role come back as one of the other."""
    return delta.modified * 2 > feed.count and delta.crossed * 2 > delta.modified


def is_initial(feed: Feed, delta: FeedDelta) -> bool:
    return feed.count == 0 and delta.added > 0


def next_stamp(now_millis: int, feeds: Mapping[str, Feed]) -> int:
    """Whole seconds, later than every earlier stamp: with an equal one, readers of the first sync miss the second."""
    return max([now_millis // 1000, *(feed.stamp + 1 for feed in feeds.values() if feed.stamp is not None)])


@dataclass(frozen=True, slots=True)
class Window:
    """Positions after `start` up to `end`; `until` is the stamp from which to read on."""

    start: int
    end: int
    until: int

    @property
    def total(self) -> int:
        return max(self.end - self.start, 0)


def check_page(page: int, page_size: int) -> None:
    wrong = []
    if page < 1:
        wrong.append(("page", "must be at least 1"))
    if not 1 <= page_size <= MAX_PAGE:
        wrong.append(("pageSize", f"must be 1 to {MAX_PAGE}"))
    if wrong:
        raise Invalid("; ".join(f"{name} {why}" for name, why in wrong), fields=wrong)


def check_since(feed: Feed, since: int, now_millis: int, retention_days: float) -> None:
    """Gone when something after `since` may be missing; never at or past the head, where nothing is."""
    assert feed.stamp is not None
    if feed.head_stamp is not None and since >= feed.head_stamp:
        return
    pruned = feed.floor_stamp is not None and since < feed.floor_stamp
    if pruned or since < now_millis // 1000 - retention_days * DAY_SECONDS:
        raise gone(feed, "expired")


def check_cursor(feed: Feed, cursor: Cursor) -> None:
    if cursor.epoch != feed.epoch:
        raise gone(feed, "epoch")
    if cursor.pos > feed.head_pos:
        raise gone(feed, "unknown")
    if cursor.pos < feed.floor_pos:
        raise gone(feed, "expired")


def page_of(window: Window, page: int, page_size: int) -> tuple[int, int]:
    """The positions of a page: after the first, up to the second."""
    start = window.start + (page - 1) * page_size
    return min(start, window.end), min(start + page_size, window.end)


def pages(total: int, page_size: int) -> int:
    return -(-total // page_size)
