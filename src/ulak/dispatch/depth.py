"""How many unfinished tasks there are: by the answered commits of this process, and recounted for all others."""

from __future__ import annotations

from ulak.errors import Refused
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries(__package__)

RECOUNT_SECONDS = 5.0


class Depth:
    """Refuses new tasks at the bound. Where other processes open tasks too, it is some seconds behind theirs."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.live = 0

    async def recount(self, store: Store) -> None:
        self.live = await store.read(_count)

    def check(self) -> None:
        if self.live >= self.capacity:
            raise Refused(
                f"{self.capacity} tasks are unfinished already (dispatch.capacity); try again later",
                retry_after_seconds=5,
            )


def _count(tx: Tx) -> int:
    row = tx.row(sql.count_live_tasks)
    return 0 if row is None else int(row[0])
