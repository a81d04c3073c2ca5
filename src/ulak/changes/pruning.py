"""Forgets what is older than retention: whole syncs, in slices; of each key the last version stays."""

from __future__ import annotations

from ulak.changes import records
from ulak.changes.decide import DAY_SECONDS
from ulak.changes.model import Feed
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

SLICE = 200
SYNCS_KEPT_DAYS = 400


def raise_floor(tx: Tx, name: str, retention_days: float) -> Feed:
    """Move the beginning of the log past the syncs that are too old; rows below it are then no longer changes."""
    feed = records.read_feeds(tx)[name]
    cutoff = tx.now // 1000 - round(retention_days * DAY_SECONDS)
    row = tx.row(sql.find_expired, feed=name, cutoff=cutoff)
    if row is not None:
        stamp, head = row
        if head > feed.floor_pos:
            tx.execute(sql.move_floor, name=name, pos=head, stamp=stamp)
        tx.execute(sql.delete_publications, feed=name, stamp=stamp)
    tx.execute(sql.prune_syncs, before=tx.now - SYNCS_KEPT_DAYS * DAY_SECONDS * 1000)
    return records.read_feeds(tx)[name]


def drop_superseded(tx: Tx, name: str) -> bool:
    """Remove a slice of versions below the floor that a later one there has replaced; False when none is left."""
    feed = records.read_feeds(tx)[name]
    if feed.pruned_pos >= feed.floor_pos:
        return False
    end = min(feed.pruned_pos + SLICE, feed.floor_pos)
    rows = tx.rows(sql.find_superseded, feed=name, start=feed.pruned_pos, end=end)
    positions = [row[0] for row in rows]
    if positions:
        tx.execute(sql.delete_versions, feed=name, positions=positions)
        tx.execute(sql.delete_titles, feed=name, positions=positions)
    tx.execute(sql.move_pruned, name=name, pos=end)
    return True
