"""Capacity on a database that others share: it is leased in blocks of credit and spent in memory.

Only owed work exceeds the bound; the held credit is then negative. Capacity that other processes hold and do not use
may be refused early: up to three blocks each while they are busy, nothing once they have been idle for a second.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from ulak.clock import Clock
from ulak.spine.capacity import Capacity
from ulak.stores.postgres.lines import Lines

MAX_IN_A_BLOCK = 1000
_PREFETCH_FROM = 100  # blocks smaller than this are taken only when they are needed
_IDLE_SECONDS = 1.0


class Credits(Capacity):
    def __init__(self, active: Callable[[str], int], live: Callable[[str], int] | None, clock: Clock) -> None:
        super().__init__(active, live)
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, int] = {}  # pools of which the database had too little, with what it had
        self._admitted_at: dict[str, float] = {}
        self._given: set[str] = set()
        self.lines = Lines(clock)
        self._elsewhere: dict[str, tuple[float, int]] = {}

    def block(self, pool: str) -> int:
        return min(MAX_IN_A_BLOCK, max(1, self.bound(pool) // 8))

    def free(self, pool: str) -> int:
        """Return the credit that is held here; without any, a block, unless the database has less to give.

        Where owed work has taken more than was held, nothing: the database had no more, or it would be paid.
        """
        held = self.available.get(pool, 0)
        return held or min(self.block(pool), self._left.get(pool, MAX_IN_A_BLOCK))

    def held(self, pool: str) -> int:
        return self.available.get(pool, 0)

    def apply(self, change: Counter[str]) -> list[str]:
        with self._lock:
            for pool, number in change.items():
                self.available[pool] = self.available.get(pool, 0) + number
        gained = [pool for pool, number in change.items() if number > 0]
        for pool in gained:
            if self.held(pool) >= 0:  # a debt is paid by departures, and by the upkeep twice a second
                self._left.pop(pool, None)
        return gained

    def take(self, lent: Counter[str]) -> None:
        with self._lock:
            for pool, number in lent.items():
                self.available[pool] = self.available.get(pool, 0) - number

    def move(self, change: Counter[str]) -> None:
        self.lines.move(change)

    def free_elsewhere(self, pool: str) -> int | None:
        """Return how much the database had to give, if that was asked lately."""
        asked_at, number = self._elsewhere.get(pool, (-math.inf, 0))
        return number if self._clock.monotonic() - asked_at < self.lines.ask_seconds else None

    def note_elsewhere(self, pool: str, number: int) -> None:
        self._elsewhere[pool] = (self._clock.monotonic(), number)

    def note_taken(self, pool: str, number: int) -> None:
        """Note credit that was taken (positive) or given back (negative)."""
        if pool in self._elsewhere:
            asked_at, before = self._elsewhere[pool]
            self._elsewhere[pool] = (asked_at, before - number)

    def may_ask(self, pool: str, number: int) -> bool:
        """Not for more than the database had left, until there is reason to believe that it has more."""
        return pool not in self._left or number <= self._left[pool]

    def note_left(self, pool: str, number: int) -> None:
        self._left[pool] = number

    def note_admitted(self, pool: str) -> None:
        self._admitted_at[pool] = self._clock.monotonic()

    def ask_again(self, pools: Iterable[str] | None = None) -> list[str]:
        """It is worth asking again for these, or for all; return for which the database had nothing."""
        lacking = [pool for pool in (list(self._left) if pools is None else pools) if pool in self._left]
        for pool in lacking:
            self._left.pop(pool, None)
        return lacking

    def note_given(self, pool: str) -> None:
        self._given.add(pool)

    def take_given(self) -> list[str]:
        """The pools of which credit was given back since the last time, for others to hear."""
        given, self._given = self._given, set()
        return list(given)

    def wish(self, pool: str, change: int, *, admits: bool) -> int:
        """Return how much credit a commit with this change of capacity should take (positive) or give back (negative).

        A thread that does not admit gives back only what its commit frees: the other may be spending the held credit.
        """
        block, balance = self.block(pool), self.held(pool) + change
        if balance < 0 and self.may_ask(pool, 1):
            return -balance
        if balance > 3 * block:
            return block - balance if admits else -min(balance - block, max(change, 0))
        if admits and block >= _PREFETCH_FROM and 2 * balance < block and self.may_ask(pool, block):
            return block
        return 0

    def idle(self) -> dict[str, int]:
        """Credit that nobody here has asked for lately."""
        earliest = self._clock.monotonic() - _IDLE_SECONDS
        return {
            pool: number
            for pool, number in list(self.available.items())
            if number > 0 and self._admitted_at.get(pool, earliest) <= earliest
        }

    def debts(self) -> dict[str, int]:
        """Return how much owed work has taken beyond the credit that was held."""
        return {pool: -number for pool, number in list(self.available.items()) if number < 0}

    def forget(self) -> None:
        """Drop all credit: this process was taken for dead, and its credit was given to others."""
        with self._lock:
            self.available.clear()
        self._left.clear()
