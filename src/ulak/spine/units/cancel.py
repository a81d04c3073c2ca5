"""Cancelling: at once while a job waits; by a mark that its worker sees while it runs."""

from __future__ import annotations

from typing import Literal

from ulak.spine.job import LEASED, JobEvent
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.finish import Leased, finish

sql = Queries("ulak.spine")

Cancelled = Literal["cancelled", "cancelling", "finished"]


def cancel(tx: Tx, identifier: int) -> Cancelled:
    found = tx.row(sql.read_state, id=identifier)
    if found is not None and found[2] is not None:
        tx.lock_keys([found[2]])
    found = tx.row(sql.lock_state, id=identifier)
    if found is None:
        return "finished"
    state, *columns = found
    if state == LEASED:
        tx.execute(sql.mark_cancelled, id=identifier, now=tx.now)
        tx.after_commit.cancelled.append(identifier)
        return "cancelling"
    finish(tx, JobEvent.CANCELLED, [Leased._make(columns)], {})
    return "cancelled"


# Before the claims of its commit: of a claim that is not answered yet no worker knows, and none would hear this.
CANCEL: Verb[int, Cancelled] = Verb(
    WriterQueue.TIMERS, lambda tx, items: [cancel(tx, identifier) for identifier in items]
)
