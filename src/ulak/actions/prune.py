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
    ids = [identifier for (identifier,) in tx.rows(sql.find_prunable, before=oldest(tx, keep_millis), n=SLICE)]
    remove_runs(tx, ids)
    return len(ids)


def oldest(tx: Tx, keep_millis: int) -> int:
    """Return the id from which on runs are kept."""
    return max(tx.now - keep_millis - EPOCH_MILLIS, 0) << _ID_SHIFT


def remove_runs(tx: Tx, ids: list[int]) -> None:
    if ids:
        tx.execute(sql.delete_former, runs=ids)
        tx.execute(sql.delete_steps, runs=ids)
        tx.execute(sql.delete_runs, ids=ids)


def prune_sent(tx: Tx) -> int:
    return tx.execute(sql.prune_sent, before=hour_of(tx.now) - KEPT_HOURS)
