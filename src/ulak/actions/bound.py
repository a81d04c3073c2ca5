"""The bound of unfinished runs: estimated from below, counted when the estimate reaches it."""

from __future__ import annotations

import asyncio

from ulak.errors import Refused
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries("ulak.actions")

RECOUNT_SECONDS = 0.1
RETRY_AFTER_SECONDS = 1.0


def count_unfinished(tx: Tx, most: int) -> int:
    row = tx.row(sql.count_unfinished, n=most)
    assert row is not None
    return int(row[0])


class Bound:
    """The count of unfinished runs, and this process's accepts since; ends since are seen at the next count.

    A count misses the accepts that are not committed yet, so they are added to it.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._estimate: int | None = None
        self._under_way = 0
        self._admitted = 0
        self._counted_at = 0.0
        self._counting: asyncio.Task[int] | None = None

    async def admit(self, store: Store, number: int) -> None:
        while self._estimate is None or self._estimate + number > self._capacity:
            if not await self._recount(store):
                raise Refused(
                    f"{self._capacity:,} runs are unfinished, which is the bound (actions.capacity); try again later",
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )
        self._estimate += number
        self._under_way += number
        self._admitted += number

    def settle(self, number: int, *, new: bool) -> None:
        """Their commit has been answered; what was not new leaves its place to others."""
        self._under_way -= number
        if not new and self._estimate is not None:
            self._estimate -= number

    async def _recount(self, store: Store) -> bool:
        """One count for all who wait for it. False when the last one is too young to be worth another."""
        if self._counting is None:
            now = store.clock.monotonic()
            if self._estimate is not None and now - self._counted_at < RECOUNT_SECONDS:
                return False
            self._counted_at = now
            self._counting = asyncio.create_task(self._count(store), name="ulak-actions-bound")
        await asyncio.shield(self._counting)
        return True

    async def _count(self, store: Store) -> int:
        try:
            unseen = self._under_way - self._admitted
            counted = await store.read(count_unfinished, self._capacity + 1)
            self._estimate = counted + unseen + self._admitted
            return self._estimate
        finally:
            self._counting = None
