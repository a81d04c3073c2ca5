"""Rescue of work whose process died: it had started, so it is uncertain, and runs apart until it is cleared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.outcome import Cancel, Settlement
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.finish import Leased, bury
from ulak.spine.units.settle import mark_uncertain, settle

sql = Queries("ulak.spine")

PAGE = 500


@dataclass(frozen=True, slots=True)
class Lost:
    """An owner that is gone, and after how many deaths a job counts as the cause of them."""

    owner: int
    poison_deaths: int
    presumed: bool = False  # its lease was over when somebody looked, which was in another transaction


def rescue(tx: Tx, lost: Lost) -> Counter[str]:
    """Free a page of a dead owner's jobs; return how many of each kind. When none is left, it is declared dead."""
    rows = tx.rows(sql.read_owned, owner=lost.owner, n=PAGE)
    if not rows:
        tx.execute(sql.bury_owner, id=lost.owner, now=tx.now)
        return Counter()
    tx.lock_keys(sorted({row[3] for row in rows if row[3] is not None}))
    if lost.presumed and tx.rows_if_shared(sql.hold_owner, id=lost.owner, now=tx.now):
        return Counter()  # it was slow, and has renewed its lease meanwhile
    rows = tx.rows(sql.lock_owned, owner=lost.owner, ids=[row[0] for row in rows])
    mark_uncertain(tx, [(row[0], row[2], row[4], row[8]) for row in rows], deaths=1, owner=lost.owner)
    suspects = []
    for identifier, epoch, kind, key, attempt, crashes, hold, cancelled_at, _ in rows:
        tx.wake(kind, SUSPECT_LEVEL)
        if cancelled_at is not None:
            settle(tx, [Settlement(identifier, epoch, kind, key, attempt, Cancel("cancelled while its process died"))])
        elif hold or crashes + 1 >= lost.poison_deaths:
            _hold(tx, identifier, crashes + 1, hold=bool(hold))
        else:
            suspects.append(identifier)
    if suspects:
        tx.execute(sql.suspect_jobs, ids=suspects)
    return Counter(row[2] for row in rows)


def _hold(tx: Tx, identifier: int, deaths: int, *, hold: bool) -> None:
    (row,) = tx.rows_as(sql.read_leased, Leased, ids=[identifier])
    if hold:
        bury(
            tx,
            row,
            "the process died during this attempt; it may have had its effect and waits for a decision",
            "uncertain",
        )
    else:
        bury(tx, row, f"poison: the process died {deaths} times while this job was running", "poison")


RESCUE: Verb[Lost, Counter[str]] = Verb(WriterQueue.TIMERS, lambda tx, items: [rescue(tx, lost) for lost in items])
