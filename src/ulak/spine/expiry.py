"""What is too old ends although nobody claims it: its kind has no handler here, or it waits for a later time.

A claim drops what it finds too old by itself; this look is for the jobs that no claim comes to.
"""

from __future__ import annotations

from ulak.spine.departure import Leased, leave
from ulak.spine.job import Word
from ulak.spine.query import Queries
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

PAGE = 500
PAUSE_SECONDS = 10.0


def expire(tx: Tx) -> int:
    """Drop and count a page of waiting jobs that are too old; a full one means that there may be more."""
    found = tx.all(sql.find_expired, now=tx.now, n=PAGE)
    if not found:
        return 0
    tx.lock_keys(sorted({key for _, key in found if key is not None}))
    rows = tx.records(sql.lock_expired, Leased, ids=[identifier for identifier, _ in found])
    leave(tx, Word.EXPIRED, rows, {})
    return len(rows)


EXPIRE: Verb[None, int] = Verb(Line.TIMERS, lambda tx, items: [expire(tx) for _ in items])
