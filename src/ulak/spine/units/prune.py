"""The pruner: removes history by age, events in whole blocks, breakers nobody uses; a bounded slice at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ulak.ids import EPOCH_MILLIS
from ulak.spine.query import Queries, Query
from ulak.spine.store import Tx, Verb, WriterQueue

sql = Queries("ulak.spine")

SLICE = 1000
PAUSE_SECONDS = 60.0
# A breaker whose time was over that long ago has had no job since: a job that comes now starts with a new one.
BREAKER_MILLIS = 86_400_000


@dataclass(frozen=True, slots=True)
class Ages:
    """How long finished jobs, events and dead letters are kept, in milliseconds.

    `followed` is how long at most events are kept for a follower that is behind.
    """

    history: int
    events: int
    dead: int
    followed: int = 0

    @classmethod
    def of_days(cls, *days: float) -> Self:
        return cls(*(round(one * 86_400_000) for one in days))


def prune(tx: Tx, ages: Ages) -> dict[str, int]:
    """Remove one slice of each table; a full slice means that there is more."""
    return {
        "past": _prune_jobs(tx, sql.prune_past, tx.now - ages.history),
        "event_block": tx.execute(
            sql.prune_blocks,
            before=tx.now - ages.events,
            held_before=tx.now - max(ages.events, ages.followed),
            n=SLICE,
        ),
        "dead": _prune_jobs(tx, sql.prune_dead, tx.now - ages.dead),
        "breaker": tx.execute(sql.prune_breakers, before=tx.now - BREAKER_MILLIS, n=SLICE),
    }


def _prune_jobs(tx: Tx, query: Query, before: int) -> int:
    """No job ends before it was accepted, so younger ids need no look: there is no index on when a job ended."""
    return tx.execute(query, before=before, oldest_id=_first_id(before), n=SLICE)


def _first_id(at: int) -> int:
    """No job that was accepted after this instant has a smaller id: it bounds the look along the primary key."""
    return max(at - EPOCH_MILLIS, 0) << 22


PRUNE: Verb[Ages, dict[str, int]] = Verb(WriterQueue.TIMERS, lambda tx, items: [prune(tx, ages) for ages in items])
