"""News for other processes: the changes of commits here, gathered into notices, and when each notice is due.

A change of which the others have not heard lately is sent at once. Further changes of the same wait a few milliseconds
and go as one notice. So a flood of one kind costs few notices, and delays no news of another.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable

import msgspec

from ulak import codec
from ulak.clock import Clock
from ulak.spine.store import AfterCommit

PAUSE_SECONDS = 0.01  # between two words about the same
MIN_SECONDS = 0.002  # between any two
MAX_BYTES = 7_999  # of a NOTIFY's payload


class Notice(msgspec.Struct, array_like=True):
    """Levels with work and their lowest turn, the next deadline, jobs to stop, pools with free capacity, marks."""

    ready: list[tuple[str, int, int]] = []
    due_at: int | None = None
    cancelled: list[int] = []
    free: list[str] = []
    behind: bool = False
    events: bool = False
    hello: bool = False
    late: bool = False  # from a caller's transaction, which may have been open for long


def words(buffers: AfterCommit, free: list[str], *, events: bool, late: bool = False) -> list[str]:
    """A commit's buffers as payloads, each within the limit of a NOTIFY."""
    ready = [(kind, prio, buffers.lowest.get((kind, prio), 0)) for kind, prio in sorted(buffers.ready)]
    return _fitting(Notice(ready, buffers.due_at, buffers.cancelled, free, buffers.behind, events, late=late))


def _fitting(word: Notice) -> list[str]:
    """As one payload, or by halves where it is too long: one level, id and pool always fit."""
    payload = codec.encode_text(word)
    if len(payload.encode()) <= MAX_BYTES:
        return [payload]
    levels, ids, pools = (len(part) // 2 for part in (word.ready, word.cancelled, word.free))
    rest = Notice(ready=word.ready[levels:], cancelled=word.cancelled[ids:], free=word.free[pools:])
    word = msgspec.structs.replace(
        word, ready=word.ready[:levels], cancelled=word.cancelled[:ids], free=word.free[:pools]
    )
    return [*_fitting(word), *_fitting(rest)]


class News:
    """Added to on the event loop and other threads, taken by the notifier's."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pending = AfterCommit()
        self._free: set[str] = set()
        self._events = False
        self._topics: set[Hashable] = set()
        self._told_at: dict[Hashable, float] = {}  # of the last few milliseconds
        self._spoke_at = -math.inf
        self._due_at = math.inf

    def add(self, buffers: AfterCommit, free: list[str], *, events: bool) -> bool:
        """Whether there is something to say sooner than was known."""
        topics = _topics(buffers, free, events)
        if not topics:
            return False
        with self._lock:
            self._merge(buffers, free, events)
            self._topics |= topics
            before, self._due_at = self._due_at, min(self._due_at, self._due(topics))
            return self._due_at < before

    def _due(self, topics: set[Hashable]) -> float:
        stalest = min(self._told_at.get(topic, -math.inf) for topic in topics)
        return max(stalest + PAUSE_SECONDS, self._spoke_at + MIN_SECONDS)

    def _merge(self, buffers: AfterCommit, free: list[str], events: bool) -> None:
        into = self._pending
        into.ready |= buffers.ready
        for level in buffers.ready:
            lowest = buffers.lowest.get(level, 0)
            into.lowest[level] = min(into.lowest.get(level, lowest), lowest)
        if buffers.due_at is not None:
            into.due_at = buffers.due_at if into.due_at is None else min(into.due_at, buffers.due_at)
        into.cancelled += buffers.cancelled
        into.behind |= buffers.behind
        self._free.update(free)
        self._events |= events

    def due_in_seconds(self) -> float:
        """Until the next word; infinite when there is nothing to say."""
        return self._due_at - self._clock.monotonic()

    def take(self) -> list[str]:
        """The words that are due, each as a payload."""
        now = self._clock.monotonic()
        with self._lock:
            if self._due_at > now:
                return []
            buffers, free, events = self._pending, sorted(self._free), self._events
            recent = {topic: at for topic, at in self._told_at.items() if at + PAUSE_SECONDS > now}
            self._told_at = recent | dict.fromkeys(self._topics, now)
            self._pending, self._free, self._events, self._topics = AfterCommit(), set(), False, set()
            self._spoke_at, self._due_at = now, math.inf
        return words(buffers, free, events=events)


def _topics(buffers: AfterCommit, free: list[str], events: bool) -> set[Hashable]:
    """Return the topics on which a commit has news."""
    marks = {
        "due_at": buffers.due_at is not None,
        "cancelled": bool(buffers.cancelled),
        "behind": buffers.behind,
        "events": events,
    }
    return {
        *buffers.ready,
        *(("capacity", pool) for pool in free),
        *(name for name, told in marks.items() if told),
    }
