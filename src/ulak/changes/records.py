"""Loads and saves what the room keeps: feeds, versions, syncs and archives. Units of work; they decide nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ulak import codec
from ulak.changes.model import Feed, LastList, Version
from ulak.changes.pipeline.differ import Current
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

FIRST_KEY, LAST_KEY = "", "g"
MAX_SEARCHED = 10_000


@dataclass(frozen=True, slots=True)
class SyncRow:
    id: int
    registry: str
    status: str
    verdict: str | None
    error: str | None
    started_at: int
    ended_at: int | None
    digest: str | None
    feeds: str
    preview: str | None
    held: int


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    feed: str
    pos: int
    name: str
    stamp: int
    count: int
    state_hash: str
    bytes: int
    digest: str
    made_at: int


@dataclass(frozen=True, slots=True)
class RegistryRow:
    lease_owner: int | None
    accepted: LastList
    seen_at: int | None
    published_at: int | None


# Feeds and registries


def read_feeds(tx: Tx) -> dict[str, Feed]:
    return {row[0]: _feed(row) for row in tx.rows(sql.list_feeds)}


def _feed(row: tuple[Any, ...]) -> Feed:
    values: list[Any] = [*row[:9], codec.decode(row[9]), bytes(row[10]), *row[11:]]
    return Feed(*values)


def read_registry(tx: Tx, name: str) -> RegistryRow | None:
    row = tx.row(sql.read_registry, name=name)
    return None if row is None else RegistryRow(row[0], LastList(**codec.decode(row[1])), row[2], row[3])


# The log


def position_at(tx: Tx, feed: Feed, stamp: int) -> int:
    """The last position that was published by then; where the log begins if none was."""
    row = tx.row(sql.find_position, feed=feed.name, stamp=stamp)
    return feed.floor_pos if row is None else max(int(row[0]), feed.floor_pos)


def read_versions(tx: Tx, feed: str, start: int, end: int, *, before: bool = False) -> list[Version]:
    rows = tx.rows(sql.list_versions, feed=feed, start=start, end=end) if end > start else []
    return _versions(tx, feed, start, rows, before=before)


def read_versions_of(tx: Tx, feed: str, start: int, end: int, keys: Sequence[str], limit: int) -> list[Version]:
    rows = tx.rows(sql.list_versions_of, feed=feed, start=start, end=end, keys=list(keys), n=limit)
    return _versions(tx, feed, start, rows, before=True)


def _versions(tx: Tx, feed: str, start: int, rows: list[tuple[Any, ...]], *, before: bool) -> list[Version]:
    if not rows:
        return []
    published = tx.rows(sql.list_publications, feed=feed, start=start, n=len(rows) + 1)
    heads = [head for head, _, _ in published]
    earlier = _before(tx, feed, [row[0] for row in rows]) if before else {}
    found = []
    for row in rows:
        _, stamp, cause = published[bisect_left(heads, row[0])]
        values: list[Any] = [*row, stamp, cause, earlier.get(row[0])]
        found.append(Version(*values))
    return found


def _before(tx: Tx, feed: str, positions: list[int]) -> dict[int, str]:
    return dict(tx.rows(sql.list_before, feed=feed, positions=positions))


# Records as they stand at a position


def find_records(tx: Tx, feed: str, keys: Sequence[str], head: int) -> list[Current]:
    rows = tx.rows(sql.find_records, feed=feed, keys=list(keys), head=head) if keys else []
    return [_current(row) for row in rows]


def list_records(tx: Tx, feed: str, after: str, before: str, head: int, limit: int) -> list[Current]:
    rows = tx.rows(sql.list_records, feed=feed, after=after, before=before, head=head, n=limit)
    return [_current(row) for row in rows]


def _current(row: tuple[Any, ...]) -> Current:
    return Current(row[0], bytes(row[1]), row[2], row[3], row[4])


def search_titles(tx: Tx, feed: Feed, text: str, start: int, limit: int) -> tuple[int, list[tuple[str, str]]]:
    """How many records have the text in their title, up to a bound, and (key, body) of some of them."""
    rows = tx.rows(sql.search_titles, feed=feed.name, head=feed.head_pos, text=text, n=MAX_SEARCHED)
    positions = [row[0] for row in rows[start : start + limit]]
    found = tx.rows(sql.read_versions, feed=feed.name, positions=positions) if positions else []
    return len(rows), [(key, body) for key, body in found]


# Syncs


def add_sync(tx: Tx, identifier: int, registry: str) -> None:
    tx.execute(sql.add_sync, id=identifier, registry=registry, now=tx.now)


def read_sync(tx: Tx, registry: str, identifier: int) -> SyncRow | None:
    row = tx.row(sql.read_sync, registry=registry, id=identifier)
    return None if row is None else SyncRow(*row)


def list_syncs(tx: Tx, registry: str, before: int, limit: int) -> list[SyncRow]:
    return [SyncRow(*row) for row in tx.rows(sql.list_syncs, registry=registry, before=before, n=limit)]


def list_digests(tx: Tx, registry: str, before: int, limit: int) -> list[tuple[str, str]]:
    """(verdict, digest) of the last lists that were judged; a sync that came to see none has no digest."""
    return [(row[0], row[1]) for row in tx.rows(sql.list_digests, registry=registry, before=before, n=limit)]


def release_held(tx: Tx, registry: str) -> None:
    tx.execute(sql.release_held, registry=registry)


# Archives


def add_archive(tx: Tx, row: ArchiveRow) -> None:
    tx.execute(
        sql.add_archive,
        feed=row.feed,
        pos=row.pos,
        name=row.name,
        stamp=row.stamp,
        count=row.count,
        state_hash=row.state_hash,
        bytes=row.bytes,
        digest=row.digest,
        now=tx.now,
    )


def list_archives(tx: Tx, feed: str, limit: int = 1000) -> list[ArchiveRow]:
    return [ArchiveRow(*row) for row in tx.rows(sql.list_archives, feed=feed, n=limit)]


def read_archive(tx: Tx, feed: str, name: str) -> ArchiveRow | None:
    row = tx.row(sql.read_archive, feed=feed, name=name)
    return None if row is None else ArchiveRow(*row)


def take_old_archives(tx: Tx, feed: str, before: int) -> list[ArchiveRow]:
    """Forget archives that are too old, but never the newest; returns them, so that their files can go."""
    found = [ArchiveRow(*row) for row in tx.rows(sql.find_old_archives, feed=feed, before=before)]
    for row in found:
        tx.execute(sql.delete_archive, feed=feed, pos=row.pos)
    return found
