"""The pruner: removes history by age, events in whole blocks, a bounded slice at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.ids import EPOCH_MILLIS
from ulak.spine.query import Queries
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

SLICE = 1000
PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ages:
    """How long finished jobs, events and dead letters are kept, in milliseconds."""

    history: int
    events: int
    dead: int


def prune(tx: Tx, ages: Ages) -> dict[str, int]:
    """Remove one slice of each table; a full slice means that there is more."""
    return {
        "past": tx.run(
            sql.prune_past, before=tx.now - ages.history, oldest_id=_first_id(tx.now - ages.history), n=SLICE
        ),
        "event_block": tx.run(sql.prune_blocks, before=tx.now - ages.events, n=SLICE),
        "dead": tx.run(sql.prune_dead, before=tx.now - ages.dead, n=SLICE),
    }


def _first_id(at: int) -> int:
    """No job that was accepted after this instant has a smaller id: it bounds the look along the primary key."""
    return max(at - EPOCH_MILLIS, 0) << 22


PRUNE: Verb[Ages, dict[str, int]] = Verb(Line.TIMERS, lambda tx, items: [prune(tx, ages) for ages in items])
