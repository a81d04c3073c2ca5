"""Ends a sync in the transaction that settles its job: all heads and stamps move, or none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ulak import codec
from ulak.changes import decide, istanbul, records
from ulak.changes.model import (
    ANNOUNCE,
    ARCHIVE,
    COMPLETED,
    FAILED,
    FAN_OUT,
    GUARD_TRIPPED,
    PARTIAL,
    PRUNE,
    QUARANTINED,
    STATUS_OF,
    SYNC,
    Cursor,
    Feed,
    FeedReport,
    LastList,
    SyncStatus,
    SyncVerdict,
    until_of,
)
from ulak.changes.state import Sums, state_hash
from ulak.changes.syncing import lease
from ulak.changes.syncing.lease import SyncLease
from ulak.settings import Announcement
from ulak.spine.job import NewJob
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed

sql = Queries("ulak.changes")


@dataclass(frozen=True, slots=True)
class FeedChange:
    """The rows that a sync has written above the head of a feed, and the feed's state with them."""

    added: int = 0
    modified: int = 0
    removed: int = 0
    withheld: int = 0
    initial: bool = False
    sums: tuple[bytes, ...] = ()
    aliases: tuple[Mapping[str, int], ...] = ()

    @property
    def rows(self) -> int:
        return self.added + self.modified + self.removed


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sync ends. Without a lease it never began: somebody else was at work."""

    sync: int
    registry: str
    verdict: SyncVerdict
    lease: SyncLease | None = None
    changes: Mapping[str, FeedChange] = field(default_factory=dict)
    last: LastList | None = None
    cause: str = "source"
    error: str | None = None
    digest: str | None = None
    preview: Mapping[str, Any] | None = None
    approved: bool = False


def end_sync(tx: Tx, ending: Ending, announcements: Sequence[Announcement]) -> None:
    """Publish what was written, save how the sync ended, and enqueue what follows. A lost lease changes nothing."""
    if ending.lease is not None:
        lease.check(tx, ending.lease)
    feeds = {name: feed for name, feed in records.read_feeds(tx).items() if feed.registry == ending.registry}
    publishes = ending.verdict in {SyncVerdict.PUBLISHED, SyncVerdict.UNCHANGED, SyncVerdict.WITHHELD}
    reports = _publish(tx, ending, feeds) if publishes else {name: _unmoved(feed) for name, feed in feeds.items()}
    if ending.last is not None and publishes:
        tx.execute(sql.accept_list, name=ending.registry, accepted=_encoded(ending.last), now=tx.now)
    held = ending.verdict in {SyncVerdict.WITHHELD, SyncVerdict.QUARANTINED}
    if held or (publishes and (ending.approved or any(change.rows for change in ending.changes.values()))):
        records.release_held(tx, ending.registry)  # what was held back before this list is out of date
    _save(tx, ending, reports, held=held)
    if ending.lease is not None:
        tx.execute(sql.end_lease, name=ending.registry, lease=ending.lease.number, now=tx.now)
    first = {name for name, feed in feeds.items() if publishes and feed.stamp is None}  # an empty feed has one, too
    _tell(tx, ending, reports, first, announcements)


def _publish(tx: Tx, ending: Ending, feeds: dict[str, Feed]) -> dict[str, FeedReport]:
    stamp = decide.next_stamp(tx.now, feeds)
    return {
        name: _publish_feed(tx, ending, feed, ending.changes.get(name, FeedChange()), stamp)
        for name, feed in sorted(feeds.items())
    }


def _unmoved(feed: Feed) -> FeedReport:
    """A feed of which nothing was published, as it stands."""
    cursor = None if feed.stamp is None else str(feed.head)
    return FeedReport(count=feed.count, cursor=cursor, until=until_of(feed), state_hash=feed.state_hash)


def _publish_feed(tx: Tx, ending: Ending, feed: Feed, change: FeedChange, stamp: int) -> FeedReport:
    moved = _moved(feed, change, stamp) if change.rows else replace(feed, stamp=stamp)
    if change.rows:
        _save_head(tx, moved)
        tx.execute(
            sql.add_publication,
            feed=feed.name,
            stamp=stamp,
            head_pos=moved.head_pos,
            sync=ending.sync,
            cause=ending.cause,
        )
    else:
        tx.execute(sql.move_stamp, name=feed.name, stamp=stamp)
    return FeedReport(
        change.added,
        change.modified,
        change.removed,
        change.withheld,
        moved.count,
        change.initial,
        str(Cursor(feed.epoch, moved.head_pos)),
        istanbul.shown(stamp),
        moved.state_hash,
    )


def _moved(feed: Feed, change: FeedChange, stamp: int) -> Feed:
    head = feed.head_pos + change.rows
    sums = Sums(feed.buckets)
    for part in change.sums:
        sums.join(part)
    aliases = dict(feed.aliases)
    for counts in change.aliases:
        for role, number in counts.items():
            aliases[role] = aliases.get(role, 0) + number
    buckets = sums.packed()
    moved = replace(
        feed,
        head_pos=head,
        stamp=stamp,
        head_stamp=stamp,
        count=feed.count + change.added - change.removed,
        aliases=aliases,
        buckets=buckets,
        state_hash=state_hash(buckets),
    )
    if not change.initial:
        return moved
    # Rows of a first sync are not changes. If the feed had been published before, its consumers have to start again.
    restarted = feed.stamp is not None
    return replace(
        moved, floor_pos=head, fan_pos=head, pruned_pos=head, floor_stamp=stamp if restarted else feed.floor_stamp
    )


def _save_head(tx: Tx, feed: Feed) -> None:
    tx.execute(
        sql.move_head,
        name=feed.name,
        head_pos=feed.head_pos,
        floor_pos=feed.floor_pos,
        floor_stamp=feed.floor_stamp,
        stamp=feed.stamp,
        head_stamp=feed.head_stamp,
        count=feed.count,
        aliases=codec.encode_text(feed.aliases),
        buckets=feed.buckets,
        state_hash=feed.state_hash,
        fan_pos=feed.fan_pos,
        pruned_pos=feed.pruned_pos,
    )


def _save(tx: Tx, ending: Ending, reports: dict[str, FeedReport], *, held: bool) -> None:
    tx.execute(
        sql.end_sync,
        id=ending.sync,
        status=STATUS_OF[ending.verdict],
        verdict=ending.verdict,
        error=ending.error,
        now=tx.now,
        digest=ending.digest,
        feeds=_encoded(reports),
        preview=None if ending.preview is None else _encoded(ending.preview),
        held=int(held),
    )


def _tell(
    tx: Tx,
    ending: Ending,
    reports: dict[str, FeedReport],
    first: set[str],
    announcements: Sequence[Announcement],
) -> None:
    told = {
        "registry": ending.registry,
        "syncId": tx.ids.to_text(ending.sync),
        "status": STATUS_OF[ending.verdict],
        "verdict": ending.verdict,
        "error": ending.error,
        "feeds": msgspec.to_builtins(reports),
    }
    events = _events(ending.verdict)
    for event in events:
        tx.emit(event, ending.sync, SYNC, told)
    jobs = [
        NewJob(ANNOUNCE, {"url": one.url, "format": one.format, "event": event, "data": told})
        for event in events
        for one in announcements
        if not one.events or event in one.events
    ]
    moved = [name for name, change in ending.changes.items() if change.rows]
    jobs += [NewJob(ARCHIVE, {"feed": name}) for name in sorted({*moved, *first})]
    jobs += [NewJob(FAN_OUT, {"feed": name}) for name in moved if not ending.changes[name].initial]
    enqueue_owed(tx, [*jobs, NewJob(PRUNE, {"registry": ending.registry})])


def _events(verdict: SyncVerdict) -> list[str]:
    events = {SyncStatus.SUCCESS: COMPLETED, SyncStatus.PARTIAL: PARTIAL, SyncStatus.FAILED: FAILED}
    further = {SyncVerdict.WITHHELD: [GUARD_TRIPPED], SyncVerdict.QUARANTINED: [QUARANTINED, GUARD_TRIPPED]}
    return [events[STATUS_OF[verdict]], *further.get(verdict, [])]


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
