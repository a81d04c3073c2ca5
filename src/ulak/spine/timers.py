"""Timers: a timer is a job that is not yet due. This makes due jobs ready and says when to look again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ulak.spine.claim import Claimed, Claimer, Demand
from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.query import Queries
from ulak.spine.slots import place_due
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

# A slice keeps a storm of due timers from holding up everybody else's commit.
SLICE = 200


@dataclass(frozen=True, slots=True)
class Promoted:
    """What was taken of the jobs that became due, and when to look again."""

    claimed: Claimed
    next_due_at: int | None


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


def _promote_and_claim(tx: Tx, demand: Demand, claimer: Claimer) -> Promoted:
    following = promote_due(tx)
    hot = sorted(tx.buffers.ready)
    wants = [replace(want, levels=tuple(prio for kind, prio in hot if kind == want.kind)) for want in demand.wants]
    claimed = claimer.claim(tx, replace(demand, wants=tuple(want for want in wants if want.levels)))
    tx.buffers.ready.difference_update(claimed.dry)  # what is taken already need not wake anybody
    return Promoted(claimed, following)


PROMOTE_DUE: Verb[None, int | None] = Verb(Line.TIMERS, lambda tx, items: [promote_due(tx)] * len(items))


def promoting(claimer: Claimer) -> Verb[Demand, Promoted]:
    """Promote, and claim what there is room for in the same transaction: a timer then waits for one commit, not two."""
    return Verb(Line.TIMERS, lambda tx, items: [_promote_and_claim(tx, demand, claimer) for demand in items])
