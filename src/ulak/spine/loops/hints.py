"""Where there may be work: levels that a commit made ready, kinds that rest for their rate, and whose turn it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from ulak.spine.handler import Handlers
from ulak.spine.job import SUSPECT_LEVEL, Priority, kind_of
from ulak.spine.units.claim import Claimed

LEVELS = tuple(int(level) for level in Priority)


class WorkHints:
    """A worker's knowledge without asking the store. It may say too much, never too little."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._hot: set[tuple[str, int]] = set()
        self._newer: set[tuple[str, int]] = set()  # ready since the last claim went out, which says nothing of them
        self._resting: dict[str, float] = {}
        self._turns: dict[str, int] = {}
        self._turn = 0
        self.suspects = True

    def add(self, ready: Iterable[tuple[str, int]]) -> None:
        """A commit made these (kind, priority) pairs ready."""
        for kind, prio in ready:
            if prio == SUSPECT_LEVEL:
                self.suspects = True
            elif self._handlers.get(kind) is not None:
                self._hot.add((kind, prio))
                self._newer.add((kind, prio))

    def add_all(self) -> None:
        """Everything: at the start, and once in a while, because a wake-up may have been lost."""
        self.add((handler.kind, level) for handler in self._handlers for level in LEVELS)
        self.suspects = True

    def claim_sent(self) -> None:
        """Note that a claim is sent: its answer does not cover what becomes ready from here on."""
        self._newer.clear()

    def note(self, claimed: Claimed, now: float) -> None:
        """Note a claim's finds: levels that were empty, and kinds that have spent their rate."""
        self._hot.difference_update(level for level in claimed.dry if level not in self._newer)
        for kind, seconds in claimed.rate_wait_seconds.items():
            self._resting[kind] = now + seconds
        self._turn += 1
        self._turns.update(dict.fromkeys(map(kind_of, claimed.leases), self._turn))

    def levels(self, now: float) -> dict[str, tuple[int, ...]]:
        """Hot levels by kind, the kind that was served longest ago first."""
        self._wake_rested(now)
        found: defaultdict[str, list[int]] = defaultdict(list)
        for kind, prio in self._hot:
            if kind not in self._resting:
                found[kind].append(prio)
        return {kind: tuple(sorted(found[kind])) for kind in sorted(found, key=lambda name: self._turns.get(name, 0))}

    @property
    def resting(self) -> Collection[str]:
        """The kinds that rest for their rate."""
        return self._resting

    def _wake_rested(self, now: float) -> None:
        for kind in [kind for kind, until in self._resting.items() if until <= now]:
            del self._resting[kind]
            self._hot.update((kind, level) for level in LEVELS)

    def waits_for_rate(self, kind: str, now: float) -> bool:
        return self._resting.get(kind, now) > now

    def rest_seconds(self, now: float, longest: float) -> float:
        """How long nothing here can change by itself."""
        return max(min([longest, *(until - now for until in self._resting.values())]), 0.0)
