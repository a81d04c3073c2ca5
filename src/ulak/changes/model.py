"""The room's nouns: cursors, feeds as they stand, publications, syncs and how they end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Literal, NamedTuple

import msgspec

from ulak.changes import istanbul
from ulak.errors import Gone, Invalid

SYNC, ARCHIVE, ANNOUNCE, FAN_OUT, PRUNE = (
    f"changes.{verb}" for verb in ("sync", "archive", "announce", "fan_out", "prune")
)
COMPLETED, FAILED, PARTIAL, GUARD_TRIPPED, QUARANTINED = (
    "changes.sync.completed",
    "changes.sync.failed",
    "changes.sync.partial",
    "changes.guard.tripped",
    "changes.snapshot.quarantined",
)
EVENTS = (COMPLETED, FAILED, PARTIAL, GUARD_TRIPPED, QUARANTINED)

_CURSOR = re.compile(r"([0-9a-f]{8})-([0-9]{1,15})", re.ASCII)
Why = Literal["expired", "epoch", "unknown"]


class ChangeType(IntEnum):
    """The seed's numbers."""

    ADDED = 1
    MODIFIED = 2
    REMOVED = 3


class SyncStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"


class SyncVerdict(StrEnum):
    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    WITHHELD = "withheld"
    QUARANTINED = "quarantined"
    REFUSED = "refused"
    BUSY = "busy"


STATUS_OF = {
    SyncVerdict.PUBLISHED: SyncStatus.SUCCESS,
    SyncVerdict.UNCHANGED: SyncStatus.SUCCESS,
    SyncVerdict.WITHHELD: SyncStatus.PARTIAL,
    SyncVerdict.BUSY: SyncStatus.PARTIAL,
    SyncVerdict.QUARANTINED: SyncStatus.FAILED,
    SyncVerdict.REFUSED: SyncStatus.FAILED,
}


class Cursor(NamedTuple):
    """A place in a feed's log. Opaque outside; the epoch changes when the log begins anew."""

    epoch: str
    pos: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.pos}"

    @classmethod
    def parse(cls, name: str, text: str) -> Cursor:
        found = _CURSOR.fullmatch(text)
        if found is None:
            why = "must be a cursor as this feed gives it"
            raise Invalid(f"{name} {why}", fields=[(name, why)])
        return cls(found[1], int(found[2]))


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as its row says. `stamp` is that of the last publication, None before the first."""

    name: str
    registry: str
    epoch: str
    head_pos: int
    floor_pos: int
    floor_stamp: int | None
    stamp: int | None
    head_stamp: int | None
    count: int
    aliases: dict[str, int]
    buckets: bytes
    state_hash: str
    fan_pos: int
    pruned_pos: int

    @property
    def head(self) -> Cursor:
        return Cursor(self.epoch, self.head_pos)

    @property
    def oldest(self) -> Cursor:
        return Cursor(self.epoch, self.floor_pos)


_WHY = {
    "expired": "what came after it was pruned",
    "epoch": "the log was begun anew since",
    "unknown": "this log has no such place",
}


def gone(feed: Feed, reason: Why) -> Gone:
    """The log does not reach to a place; where to begin again, and from where to where it does reach."""
    bootstrap = f"/api/v1/{feed.name}/archives/latest"
    return Gone(
        f"the log of {feed.name} can't be read on from there: {_WHY[reason]}; start again from {bootstrap}",
        extra={"reason": reason, "oldest": str(feed.oldest), "head": str(feed.head), "bootstrap": bootstrap},
        location=bootstrap,
    )


class Version(NamedTuple):
    """One row of the log."""

    pos: int
    key: str
    change: int
    content_hash: str | None
    parts: str | None
    body: str | None
    stamp: int
    cause: str
    before: str | None = None


class FeedReport(msgspec.Struct, rename="camel"):
    """The changes that a sync published in a feed."""

    added: int = 0
    modified: int = 0
    removed: int = 0
    withheld: int = 0
    count: int = 0
    initial: bool = False
    cursor: str | None = None
    until: str | None = None
    state_hash: str | None = None


class SyncReport(msgspec.Struct, rename="camel"):
    """A sync as everybody sees it."""

    sync_id: str
    status: str
    verdict: str | None = None
    error: str | None = None
    seconds: float | None = None
    feeds: dict[str, FeedReport] = {}


@dataclass(slots=True)
class LastList:
    """A registry's memory of the last list that it took: enough to know it again."""

    sync: int = 0
    digest: str = ""
    version: str = ""
    compare: str = ""
    withheld: bool = False
    salt: str = ""
    files: dict[str, dict[str, str]] = field(default_factory=dict)  # role: etag, modified, digest


def until_of(feed: Feed) -> str | None:
    return None if feed.stamp is None else istanbul.shown(feed.stamp)
