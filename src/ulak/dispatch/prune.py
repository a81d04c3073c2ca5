"""Removes old ended tasks with their offers, lists and decisions, a slice at a time."""

from __future__ import annotations

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

SLICE = 200


def prune_tasks(tx: Tx, keep_millis: int) -> int:
    old = sorted(identifier for (identifier,) in tx.rows(sql.find_old_tasks, before=tx.now - keep_millis, n=SLICE))
    if old:
        for query in (sql.prune_offers, sql.prune_candidates, sql.prune_decisions, sql.prune_tasks):
            tx.execute(query, ids=old)
    return len(old)
