"""Taking back jobs that nobody has claimed, many at once: timers of an answered offer, the rest of an ended plan."""

from __future__ import annotations

from collections.abc import Collection

from ulak.spine.job import JobEvent
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.finish import Leased, note_departure, unpark_leaving
from ulak.spine.units.slots import hand_on

sql = Queries("ulak.spine")


def withdraw(tx: Tx, ids: Collection[int]) -> list[int]:
    """Remove waiting jobs in two statements; return those that went, by id. They count as cancelled.

    No row of history is kept and no continuation is enqueued: the room that takes them back knows why. A job that a
    worker has claimed stays, and so does one that another transaction is just making ready; its handler has to see that
    there is nothing left to do.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return []
    tx.lock_keys([key for (key,) in tx.rows(sql.find_waiting_keys, ids=wanted)])
    rows = sorted(map(Leased._make, tx.rows(sql.withdraw_jobs, ids=wanted)))
    unpark_leaving(tx, rows)
    note_departure(tx, JobEvent.CANCELLED, sorted(rows, key=lambda row: (row.kind, row.attempt)))
    freed = [(row.key, row.slot) for row in rows if row.key is not None and row.slot is not None]
    if freed:
        hand_on(tx, freed)
    return [row.id for row in rows]
