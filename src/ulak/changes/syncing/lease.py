"""One sync at a time for each registry: a lease that is fenced by its number, and rows above the head under it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ulak import codec
from ulak.changes.model import LastList
from ulak.changes.pipeline.differ import Delta
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import EMPTY, state_hash
from ulak.errors import Conflict
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.changes")

CLEAR_SLICE = 500


class LostLease(Conflict):
    """Another process has taken over this sync; nothing more is written here."""


@dataclass(frozen=True, slots=True)
class SyncLease:
    registry: str
    number: int
    last: LastList


def ensure_registry(tx: Tx, registry: str, feeds: Sequence[FeedForm]) -> None:
    """The rows of a registry and its feeds, if they are not there yet. A feed's epoch is random and stays."""
    tx.execute(sql.add_registry, name=registry)
    for feed in feeds:
        tx.execute(
            sql.add_feed,
            name=feed.name,
            registry=registry,
            epoch=secrets.token_hex(4),
            buckets=EMPTY,
            state_hash=state_hash(EMPTY),
        )


def take(tx: Tx, registry: str, owner: int, is_live: Callable[[Tx, int], bool]) -> SyncLease | None:
    """The lease of a registry, under a new number; None while another unfinished sync has it."""
    row = tx.row(sql.lock_registry, name=registry)
    assert row is not None  # the room made it at its start
    holder, number, accepted = row
    if holder is not None and holder != owner and is_live(tx, holder):
        return None
    tx.execute(sql.take_lease, name=registry, owner=owner)
    return SyncLease(registry, number + 1, LastList(**codec.decode(accepted)))


def check(tx: Tx, lease: SyncLease) -> None:
    if tx.row(sql.check_lease, name=lease.registry, lease=lease.number) is None:
        raise LostLease


def clear_above(tx: Tx, lease: SyncLease, feed: str, head: int) -> int:
    """Remove a slice of what a sync that died left above the head; returns how much."""
    check(tx, lease)
    positions = [row[0] for row in tx.rows(sql.find_above, feed=feed, head=head, n=CLEAR_SLICE)]
    if positions:
        tx.execute(sql.delete_versions, feed=feed, positions=positions)
        tx.execute(sql.delete_titles, feed=feed, positions=positions)
    return len(positions)


def append(tx: Tx, rows: Sequence[tuple[int, Delta]], *, held: SyncLease, feed: str, sync: int) -> int:
    """Put changes at their positions above the head of a feed; returns how many."""
    check(tx, held)
    tx.insert_rows(
        sql.insert_versions,
        [(feed, pos, one.key, sync, one.change, one.hash, one.content_hash, one.parts, one.body) for pos, one in rows],
    )
    titles = [(feed, pos, one.title) for pos, one in rows if one.title is not None]
    if titles:
        tx.insert_rows(sql.insert_titles, titles)
    return len(rows)
