"""Cancelling: at once while a job waits; by a mark that its worker sees while it runs."""

from __future__ import annotations

from typing import Literal

from ulak.spine.departure import Leased, leave
from ulak.spine.job import LEASED, Word
from ulak.spine.query import Queries
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

Cancelled = Literal["cancelled", "cancelling", "finished"]


def cancel(tx: Tx, identifier: int) -> Cancelled:
    found = tx.one(sql.read_state, id=identifier)
    if found is not None and found[2] is not None:
        tx.lock_keys([found[2]])
    found = tx.one(sql.lock_state, id=identifier)
    if found is None:
        return "finished"
    state, *columns = found
    if state == LEASED:
        tx.run(sql.mark_cancelled, id=identifier, now=tx.now)
        tx.buffers.cancelled.append(identifier)
        return "cancelling"
    leave(tx, Word.CANCELLED, [Leased._make(columns)], {})
    return "cancelled"


# Before the claims of its commit: of a claim that is not answered yet no worker knows, and none would hear this.
CANCEL: Verb[int, Cancelled] = Verb(Line.TIMERS, lambda tx, items: [cancel(tx, identifier) for identifier in items])
