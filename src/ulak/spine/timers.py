"""Timers: a timer is a job that is not yet due. This makes due jobs ready and says when to look again."""

from __future__ import annotations

from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.query import Queries
from ulak.spine.slots import place_due
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

# A slice keeps a storm of due timers from holding up everybody else's commit.
SLICE = 200


def promote_due(tx: Tx) -> int | None:
    """Make a slice of due jobs ready; answers the next deadline, which may be in the past when more are due."""
    due = tx.all(sql.find_due, now=tx.now, n=SLICE)
    free = [row for row in due if row[2] is None or row[4] is not None]
    if free:
        tx.run(sql.ready_jobs, ids=[row[0] for row in free])
        for identifier, kind, _, _, _, prio, crashes in free:
            tx.wake(kind, SUSPECT_LEVEL if crashes else prio, identifier)
    joining = [(row[0], row[2], row[3], row[1], row[5]) for row in due if row[2] is not None and row[4] is None]
    if joining:
        place_due(tx, joining)
    following = tx.one(sql.next_due)
    return following[0] if following else None


PROMOTE_DUE: Verb[None, int | None] = Verb(Line.TIMERS, lambda tx, items: [promote_due(tx)] * len(items))
