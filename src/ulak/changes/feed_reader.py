"""Reads feeds: changes by time, the log by cursor, records as they are or were, search, buckets and archives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ulak import codec
from ulak.changes import answers, decide, istanbul, records, turkish
from ulak.changes.answers import Answer
from ulak.changes.decide import Window
from ulak.changes.model import Cursor, Feed, Version, gone
from ulak.changes.pipeline.differ import Current
from ulak.changes.records import ArchiveRow
from ulak.changes.registry import Registries
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import BUCKETS, bucket_hashes, range_of, to_key
from ulak.errors import Invalid, NotFound, Unavailable
from ulak.spine.room import Host
from ulak.spine.store import Tx
from ulak.spine.validate import is_text

MAX_BATCH = 100
MAX_KEYS = 1000
MAX_WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.25
ARCHIVE_WAIT_SECONDS = 2.0
MAX_BUCKET = 100_000


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of the log; `state_hash` is set at its end, where a copy can be compared."""

    feed: Feed
    versions: list[Version]
    cursor: Cursor
    more: bool

    @property
    def state_hash(self) -> str | None:
        return None if self.more else self.feed.state_hash


class FeedReader:
    def __init__(self, host: Host, registries: Registries, retention_days: float) -> None:
        self._host = host
        self._registries = registries
        self._retention_days = retention_days
        self._stamps: dict[str, int] = {}

    async def feed(self, name: str) -> Feed:
        """A feed that was published at least once."""
        form = self._registries.feed(name)
        return await self._host.store.read(_published, form.name)

    async def look(self) -> None:
        self.saw(await self._host.store.read(records.read_feeds))

    def saw(self, feeds: Mapping[str, Feed]) -> None:
        """Remember stamps; they only rise, so a look that comes late takes nothing back."""
        for name, feed in feeds.items():
            self._stamps[name] = max(feed.stamp or 0, self._stamps.get(name, 0))

    def stamp(self, name: str) -> int | None:
        """Return when a feed was last published, as of the last look; for a name that no feed has, when any was."""
        asked = [self._stamps[name]] if name in self._stamps else self._stamps.values()
        return max(asked, default=0) or None

    # By time

    async def changes(
        self, name: str, since: int, until: int | None, page: int, page_size: int, *, detail: bool = False
    ) -> bytes:
        """The seed's answer as JSON. `until` is never later than what is published: no change can fall behind it."""
        form = self._registries.feed(name)
        decide.check_page(page, page_size)
        if until is not None and until < since:
            why = "must not be earlier than since"
            raise Invalid(f"until {why}", fields=[("until", why)])
        now = self._host.store.clock.now()
        feed, window, versions = await self._host.store.read(
            _read_window, name, since, until, page, page_size, now, self._retention_days, detail
        )
        if detail:
            shown = codec.encode_text([answers.detailed(form, one, feed.epoch) for one in versions])
        else:
            shown = f"[{','.join([answers.change_text(form, one) for one in versions])}]"
        further = {
            "totalCount": window.total,
            "page": page,
            "pageSize": page_size,
            "totalPages": decide.pages(window.total, page_size),
            "until": istanbul.shown(window.until),
        }
        return f'{{"changes":{shown},{codec.encode_text(further)[1:]}'.encode()

    # By cursor

    async def log(
        self,
        name: str,
        after: Cursor | None = None,
        limit: int = 100,
        *,
        wait_seconds: float = 0.0,
        keys: Sequence[str] = (),
    ) -> LogPage:
        """Return the changes after a cursor; without one, from the log's beginning. May wait until there is one."""
        self._registries.feed(name)
        if len(keys) > MAX_KEYS:
            raise Invalid(f"{len(keys)} keys are too many", fields=[("keys", f"must be at most {MAX_KEYS}")])
        wanted = _to_keys("keys", keys)
        ends_at = self._host.clock.monotonic() + min(wait_seconds, MAX_WAIT_SECONDS)
        while True:
            page = await self._host.store.read(_read_log, name, after, limit, wanted)
            left = ends_at - self._host.clock.monotonic()
            if page.versions or left <= 0:
                return page
            await self._host.clock.wait(asyncio.Event(), min(LOOK_SECONDS, left))

    # Records

    async def record(self, name: str, identifier: str, at: int | None = None) -> Answer:
        """A record as it is, or as it was at an instant."""
        self._registries.feed(name)
        (key,) = _to_keys("identifier", [identifier])
        found = await self._host.store.read(_read_record, name, key, at)
        if found is None:
            when = "" if at is None else f" at {istanbul.shown(at)}"
            raise NotFound(f"{name} has no record {identifier!r:.60}{when}")
        return found

    async def batch(self, name: str, identifiers: Sequence[str]) -> Answer:
        if not 0 < len(identifiers) <= MAX_BATCH:
            why = f"must be 1 to {MAX_BATCH} identifiers"
            raise Invalid(f"identifiers {why}", fields=[("identifiers", why)])
        feed = await self.feed(name)
        keys = _to_keys("identifiers", list(dict.fromkeys(identifiers)))
        rows = await self._host.store.read(records.find_records, name, keys, feed.head_pos)
        found = {row.key: answers.record(row.key, row.body) for row in rows}
        return {
            "items": [found[key] for key in keys if key in found],
            "notFound": [one for one in dict.fromkeys(identifiers) if to_key(one) not in found],
        }

    async def search(self, name: str, text: str, page: int, page_size: int) -> Answer:
        decide.check_page(page, page_size)
        if page * page_size > records.MAX_SEARCHED:
            why = f"must not reach beyond {records.MAX_SEARCHED} records; narrow the search, or take the archive"
            raise Invalid(f"page {why}", fields=[("page", why)])
        feed = await self.feed(name)
        wanted = turkish.lower(text.replace("\x00", "").strip())
        start = (page - 1) * page_size
        total, rows = await self._host.store.read(records.search_titles, feed, wanted, start, page_size)
        return {
            "items": [answers.record(key, body) for key, body in rows],
            "totalCount": total,
            "page": page,
            "pageSize": page_size,
            "totalPages": decide.pages(total, page_size),
        }

    # Proof

    async def buckets(self, name: str) -> Answer:
        feed = await self.feed(name)
        return {"cursor": str(feed.head), "stateHash": feed.state_hash, "buckets": bucket_hashes(feed.buckets)}

    async def bucket(self, name: str, number: int) -> Answer:
        """Every record of a bucket, from one head: enough to mend a copy of it."""
        if not 0 <= number < BUCKETS:
            raise NotFound(f"there is no bucket {number}; there are 0 to {BUCKETS - 1}")
        self._registries.feed(name)
        feed, rows = await self._host.store.read(_read_bucket, name, number)
        return {
            "bucket": number,
            "cursor": str(feed.head),
            "stateHash": feed.state_hash,
            "hash": bucket_hashes(feed.buckets)[number],
            "items": [answers.record(row.key, row.body) for row in rows],
        }

    # Archives

    async def archives(self, name: str) -> list[ArchiveRow]:
        self._registries.feed(name)
        return await self._host.store.read(records.list_archives, name)

    async def archive(self, name: str, file_name: str | None) -> ArchiveRow:
        """One by its name, or the newest."""
        if file_name is None:
            await self.feed(name)
            rows = await self._host.store.read(records.list_archives, name, 1)
            if not rows:
                raise Unavailable(f"the first archive of {name} is being written; try again shortly")
            return rows[0]
        self._registries.feed(name)
        row = await self._host.store.read(records.read_archive, name, file_name)
        if row is None:
            raise NotFound(f"{name} has no archive {file_name!r:.80}")
        return row

    async def await_archive(self, name: str) -> None:
        """Wait shortly for the archive of a feed's head, which is written just after its sync has ended."""
        self._registries.feed(name)
        ends_at = self._host.clock.monotonic() + ARCHIVE_WAIT_SECONDS
        while not await self._host.store.read(_has_archive, name):
            left = ends_at - self._host.clock.monotonic()
            if left <= 0:
                return
            await self._host.clock.wait(asyncio.Event(), min(LOOK_SECONDS, left))

    def form(self, name: str) -> FeedForm:
        return self._registries.feed(name)


def _to_keys(name: str, identifiers: Sequence[str]) -> list[str]:
    if not all(map(is_text, identifiers)):
        why = "must be text, without NUL and lone surrogates"
        raise Invalid(f"{name} {why}", fields=[(name, why)])
    return [to_key(one) for one in identifiers]


def _published(tx: Tx, name: str) -> Feed:
    feed = records.read_feeds(tx).get(name)
    if feed is None or feed.stamp is None:
        raise Unavailable(f"{name} was never synced; ask again after its first sync")
    return feed


def _read_window(
    tx: Tx,
    name: str,
    since: int,
    until: int | None,
    page: int,
    page_size: int,
    now: int,
    retention_days: float,
    detail: bool,
) -> tuple[Feed, Window, list[Version]]:
    """In one read: the window and its rows belong to the same head."""
    feed = _published(tx, name)
    assert feed.stamp is not None
    decide.check_since(feed, since, now, retention_days)
    last = feed.stamp if until is None else min(until, feed.stamp)
    start = records.position_at(tx, feed, since)
    window = Window(start, max(records.position_at(tx, feed, last), start), last)
    first, final = decide.page_of(window, page, page_size)
    return feed, window, records.read_versions(tx, name, first, final, before=detail)


def _read_log(tx: Tx, name: str, after: Cursor | None, limit: int, keys: list[str]) -> LogPage:
    feed = _published(tx, name)
    cursor = feed.oldest if after is None else after
    decide.check_cursor(feed, cursor)
    if keys:
        versions = records.read_versions_of(tx, name, cursor.pos, feed.head_pos, keys, limit)
        end = versions[-1].pos if len(versions) == limit else feed.head_pos
    else:
        end = min(cursor.pos + limit, feed.head_pos)
        versions = records.read_versions(tx, name, cursor.pos, end, before=True)
    return LogPage(feed, versions, Cursor(feed.epoch, end), end < feed.head_pos)


def _has_archive(tx: Tx, name: str) -> bool:
    head = _published(tx, name).head_pos
    return any(row.pos == head for row in records.list_archives(tx, name, 1))


def _read_record(tx: Tx, name: str, key: str, at: int | None) -> Answer | None:
    feed = _published(tx, name)
    head = feed.head_pos
    if at is not None:
        if feed.floor_stamp is not None and at < feed.floor_stamp:
            raise gone(feed, "expired")
        head = records.position_at(tx, feed, at) if _was_published(tx, feed, at) else -1
    rows = records.find_records(tx, name, [key], head)
    return answers.record(key, rows[0].body) if rows else None


def _was_published(tx: Tx, feed: Feed, at: int) -> bool:
    if feed.floor_stamp is not None and at >= feed.floor_stamp:
        return True
    return tx.row(records.sql.find_position, feed=feed.name, stamp=at) is not None


def _read_bucket(tx: Tx, name: str, number: int) -> tuple[Feed, list[Current]]:
    feed = _published(tx, name)
    first, beyond = range_of(number)
    return feed, records.list_records(tx, name, first, beyond, feed.head_pos, MAX_BUCKET)
