"""Runs that are older than their evaluation counts, and hours that no brake looks at any more, are removed."""

from __future__ import annotations

from ulak.actions.brakes import hour_of
from ulak.ids import EPOCH_MILLIS
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

SLICE = 500
KEPT_HOURS = 48
_ID_SHIFT = 22  # bits of an id below its milliseconds


def prune_runs(tx: Tx, keep_millis: int) -> int:
    """A slice of the runs that ended and are too old, with their steps."""
    before = max(tx.now - keep_millis - EPOCH_MILLIS, 0) << _ID_SHIFT
    ids = [identifier for (identifier,) in tx.rows(sql.find_prunable, before=before, n=SLICE)]
    if ids:
        tx.execute(sql.delete_steps, runs=ids)
        tx.execute(sql.delete_runs, ids=ids)
    return len(ids)


def prune_sent(tx: Tx) -> int:
    return tx.execute(sql.prune_sent, before=hour_of(tx.now) - KEPT_HOURS)
