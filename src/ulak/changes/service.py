"""`ulak.changes`: the verbs of the room. Sync, look at syncs, decide about what was held back, and read feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from ulak.changes import istanbul, records, watches
from ulak.changes.answers import Answer
from ulak.changes.feed_reader import FeedReader, LogPage
from ulak.changes.jobs import is_live
from ulak.changes.model import SYNC, Cursor, FeedReport, SyncReport, SyncStatus, SyncVerdict, until_of
from ulak.changes.records import SyncRow
from ulak.changes.registry import Registries
from ulak.changes.storehouse import Storehouse
from ulak.changes.syncing.workshop import Workshop
from ulak.changes.watches import Watch
from ulak.channels.ssrf import is_url
from ulak.errors import Conflict, Invalid, NotFound, Unavailable
from ulak.settings import Changes as Section
from ulak.spine.job import NewJob, Row
from ulak.spine.room import Host
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import Full, enqueue_rows
from ulak.spine.units.records import read_record
from ulak.spine.validate import is_kind, is_text, to_row

LOOK_SECONDS = 0.1
NEWEST = 1 << 62


class Changes:
    def __init__(
        self, host: Host, section: Section, registries: Registries, reader: FeedReader, storehouse: Storehouse
    ) -> None:
        self._host = host
        self._section = section
        self.registries = registries
        self.feeds = reader
        self.storehouse = storehouse

    # Syncs

    async def start(self, registry: str, *, inbox: str | None = None) -> SyncReport:
        """Ask for a sync. While one runs, the answer is `partial` and names that one."""
        roles, payload = self.registries.get(registry).source.roles, {"registry": registry}
        if inbox is not None:
            await asyncio.to_thread(_check_files, self._shop(registry), inbox, roles)
            payload["inbox"] = inbox
        begun = await self._start(registry, payload)
        if begun.status == SyncStatus.PARTIAL and inbox is not None:
            await asyncio.to_thread(self._shop(registry).drop_files, inbox)
        return begun

    async def sync(self, registry: str, *, inbox: str | None = None) -> SyncReport:
        """A sync from beginning to end; returns how it ended."""
        begun = await self.start(registry, inbox=inbox)
        if begun.status == SyncStatus.PARTIAL:
            return begun
        return await self.wait(registry, begun.sync_id)

    async def wait(self, registry: str, sync_id: str | UUID) -> SyncReport:
        while True:
            found = await self.get_sync(registry, sync_id)
            if found.status != SyncStatus.RUNNING:
                return found
            await self._host.clock.wait(asyncio.Event(), LOOK_SECONDS)

    async def _start(self, registry: str, payload: Mapping[str, Any]) -> SyncReport:
        store = self._host.store
        now = store.clock.now()
        job = to_row(NewJob(SYNC, dict(payload), unique_key=registry), store.ids.take(now), now)
        row = self._host.telemetry.tracer.stamped(job)
        holder = await store.write(_enqueue_sync, row, registry)
        if holder is None:
            raise Unavailable(f"no sync of {registry} is taken for now; too many jobs wait")
        if holder != row.id:
            return SyncReport(self._text(holder), SyncStatus.PARTIAL, SyncVerdict.BUSY)
        return SyncReport(self._text(row.id), SyncStatus.RUNNING)

    async def get_sync(self, registry: str, sync_id: str | UUID) -> SyncReport:
        return self._report(await self._row(registry, sync_id))

    async def list_syncs(self, registry: str, before: str | None = None, limit: int = 50) -> list[SyncReport]:
        self.registries.get(registry)
        start = NEWEST if before is None else self._number(before)
        rows = await self._host.store.read(_list_syncs, registry, start, limit)
        return [self._report(row) for row in rows]

    async def preview(self, registry: str, sync_id: str | UUID) -> Answer:
        row = await self._row(registry, sync_id)
        if row.preview is None:
            raise NotFound(f"sync {self._text(row.id)} held nothing back")
        return {"syncId": self._text(row.id), "held": bool(row.held), "feeds": msgspec.json.decode(row.preview)}

    async def approve(self, registry: str, sync_id: str | UUID, ceiling: int) -> SyncReport:
        """Publish what a sync held back, as a new sync, if it is no more than the ceiling."""
        row = await self._row(registry, sync_id)
        self._check_held(row)
        total = _held_back(row)
        if total > ceiling:
            raise Conflict(f"sync {self._text(row.id)} held back {total} changes, more than the ceiling {ceiling}")
        order = {"registry": registry, "approves": row.id, "ceiling": ceiling, "digest": row.digest}
        begun = await self._start(registry, order)
        if begun.status == SyncStatus.PARTIAL:
            raise Conflict(f"sync {begun.sync_id} of {registry} is running; approve when it has ended")
        return begun

    async def reject(self, registry: str, sync_id: str | UUID) -> SyncReport:
        """Drop what a sync held back."""
        row = await self._row(registry, sync_id)
        self._check_held(row)
        await self._host.store.write(records.release_held, registry)
        await asyncio.to_thread(self._shop(registry).release)
        return self._report(row)

    def _check_held(self, row: SyncRow) -> None:
        if not row.held:
            raise Conflict(f"sync {self._text(row.id)} holds nothing back: it was decided, or a later sync replaced it")

    async def _row(self, registry: str, sync_id: str | UUID) -> SyncRow:
        self.registries.get(registry)
        row = await self._host.store.read(_read_sync, registry, self._number(sync_id))
        if row is None:
            raise NotFound(f"{registry} has no sync {sync_id}")
        return row

    def inbox(self, registry: str) -> Path:
        """Where the command line puts files that a person has named."""
        self.registries.get(registry)
        return self._shop(registry).inbox.resolve()

    def _shop(self, registry: str) -> Workshop:
        return Workshop(Path(self._section.folder), registry)

    def _text(self, identifier: int) -> str:
        return self._host.store.ids.to_text(identifier)

    def _number(self, given: str | UUID) -> int:
        found = self._host.store.ids.from_uuid(given)
        if found is None:
            raise NotFound(f"{given!s:.60} is not an id that was given here")
        return found

    def _report(self, row: SyncRow) -> SyncReport:
        feeds = msgspec.json.decode(row.feeds, type=dict[str, FeedReport])
        seconds = None if row.ended_at is None else (row.ended_at - row.started_at) / 1000
        return SyncReport(self._text(row.id), row.status, row.verdict, row.error, seconds, feeds)

    # Feeds

    async def get(self, feed: str, identifier: str, at: str | None = None) -> Answer:
        return await self.feeds.record(feed, identifier, None if at is None else istanbul.parse("at", at))

    async def log(self, feed: str, after: str | None = None, limit: int = 100, wait_seconds: float = 0.0) -> LogPage:
        cursor = None if after is None else Cursor.parse("after", after)
        return await self.feeds.log(feed, cursor, limit, wait_seconds=wait_seconds)

    async def status(self) -> Answer:
        found = await self._host.store.read(records.read_feeds)
        shown = {
            name: {
                "registry": feed.registry,
                "count": feed.count,
                "cursor": None if feed.stamp is None else str(feed.head),
                "oldest": None if feed.stamp is None else str(feed.oldest),
                "until": until_of(feed),
                "stateHash": feed.state_hash,
            }
            for name, feed in found.items()
            if name in self.registries.feeds
        }
        registries = {}
        for name in self.registries.by_name:
            rows = await self._host.store.read(_list_syncs, name, NEWEST, 1)
            registries[name] = {"lastSync": msgspec.to_builtins(self._report(rows[0])) if rows else None}
        return {"feeds": shown, "registries": registries}

    # Watches

    async def watch(
        self,
        feed: str,
        keys: Sequence[str] = (),
        fields: Sequence[str] = (),
        *,
        webhook: str | None = None,
        kind: str | None = None,
    ) -> Watch:
        """Tell a webhook, or enqueue a job, whenever one of these records changes."""
        form = self.registries.feed(feed)
        if (webhook is None) == (kind is None):
            raise Invalid("a watch has a webhook or a kind", fields=[("webhook", "give this or kind, not both")])
        unknown = sorted(set(fields) - set(form.fields))
        if unknown:
            why = f"{unknown[0]} is not a field of {feed}; there are: {', '.join(form.fields)}"
            raise Invalid(f"fields: {why}", fields=[("fields", why)])
        for name, wrong, why in (
            ("webhook", webhook is not None and not is_url(webhook), "must be an http or https URL without a password"),
            ("kind", kind is not None and not is_kind(kind), "must be the kind of a job"),
            ("keys", not all(map(is_text, keys)), "must be identifiers, without NUL and lone surrogates"),
        ):
            if wrong:
                raise Invalid(f"{name} {why}", fields=[(name, why)])
        return await self._host.store.write(watches.add_watch, feed, keys, fields, webhook, kind)

    async def list_watches(self, feed: str) -> list[Watch]:
        self.registries.feed(feed)
        return await self._host.store.read(watches.list_watches, feed)

    async def unwatch(self, feed: str, watch_id: str) -> None:
        self.registries.feed(feed)
        await self._host.store.write(watches.drop_watch, feed, self._number(watch_id))


def _check_files(shop: Workshop, inbox: str, roles: Sequence[str]) -> None:
    if missing := [role for role in roles if not (shop.inbox / inbox / role).is_file()]:
        shop.drop_files(inbox)
        why = f"must have the files {' and '.join(roles)}, but {missing[0]} is missing"
        raise Invalid(f"the inbox {why}", fields=[("inbox", why)])


def _enqueue_sync(tx: Tx, row: Row, registry: str) -> int | None:
    """The id of the sync, or of the one that runs; None when the bound is reached."""
    known = records.read_registry(tx, registry)
    if known is not None and known.lease_owner is not None and is_live(tx, known.lease_owner):
        return known.lease_owner
    verdict = enqueue_rows(tx, [row])
    if isinstance(verdict, Full):
        return None
    if verdict[0] == row.id:
        records.add_sync(tx, row.id, registry)
    return verdict[0]


def _read_sync(tx: Tx, registry: str, identifier: int) -> SyncRow | None:
    """A sync that has not told how it ended is running, or its job was cancelled or died: then it has failed."""
    row = records.read_sync(tx, registry, identifier)
    if row is None or row.status != SyncStatus.RUNNING or is_live(tx, identifier):
        return row
    row = records.read_sync(tx, registry, identifier)  # it may have told between the two looks
    if row is None or row.status != SyncStatus.RUNNING:
        return row
    job = read_record(tx, identifier)
    why = "" if job is None else f" ({job.status})"
    return replace(row, status=SyncStatus.FAILED, error=f"its job has ended without a result{why}; sync again")


def _list_syncs(tx: Tx, registry: str, before: int, limit: int) -> list[SyncRow]:
    rows = records.list_syncs(tx, registry, before, limit)
    return [(_read_sync(tx, registry, row.id) or row) if row.status == SyncStatus.RUNNING else row for row in rows]


def _held_back(row: SyncRow) -> int:
    feeds = msgspec.json.decode(row.preview or "{}")
    return sum(feed["added"] + feed["modified"] + feed["removed"] for feed in feeds.values())
