"""Expiry of jobs that nobody claims: their kind has no handler here, or they wait for a later time.

A claim itself drops jobs that are too old; this unit is for the jobs that no claim finds.
"""

from __future__ import annotations

from ulak.spine.job import JobEvent
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.finish import Leased, finish

sql = Queries("ulak.spine")

PAGE = 500
PAUSE_SECONDS = 10.0


def expire(tx: Tx) -> int:
    """Drop and count a page of waiting jobs that are too old; a full one means that there may be more."""
    found = tx.rows(sql.find_expired, now=tx.now, n=PAGE)
    if not found:
        return 0
    tx.lock_keys(sorted({key for _, key in found if key is not None}))
    rows = tx.rows_as(sql.lock_expired, Leased, ids=[identifier for identifier, _ in found])
    finish(tx, JobEvent.EXPIRED, rows, {})
    return len(rows)


EXPIRE: Verb[None, int] = Verb(WriterQueue.TIMERS, lambda tx, items: [expire(tx) for _ in items])
