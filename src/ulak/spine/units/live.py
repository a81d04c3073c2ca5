"""Which of some jobs are still live: a room that waits for its jobs looks here whether one was lost."""

from __future__ import annotations

from collections.abc import Sequence

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.spine")


def find_live(tx: Tx, ids: Sequence[int]) -> set[int]:
    """Those that are ready, deferred, running, behind or suspect; finished and dead ones are not."""
    return {identifier for (identifier,) in tx.rows(sql.find_live, ids=list(ids))} if ids else set()
