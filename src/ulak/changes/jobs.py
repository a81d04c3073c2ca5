"""The room's handlers: a sync, and what follows it: archives, announcements, watches and rules, pruning."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ulak import codec
from ulak.changes import istanbul, pruning, records, watches
from ulak.changes.archive import ArchiveHead, Written, write_archive
from ulak.changes.gauges import ChangesGauges
from ulak.changes.model import Cursor, Feed, SyncVerdict
from ulak.changes.poster import Poster
from ulak.changes.records import ArchiveRow
from ulak.changes.registry import Registries
from ulak.changes.storehouse import Storehouse
from ulak.changes.syncing import lease
from ulak.changes.syncing.comparing import SMALL_BYTES, export_feed
from ulak.changes.syncing.fetching import Order
from ulak.changes.syncing.publication import Ending, end_sync
from ulak.changes.syncing.run import SyncRun
from ulak.changes.syncing.workshop import Workshop
from ulak.errors import Permanent, Refused
from ulak.log import get_logger
from ulak.settings import Changes as Section
from ulak.spine.job import Job
from ulak.spine.outcome import Cancel, Done, Snooze
from ulak.spine.room import Host
from ulak.spine.store import Tx
from ulak.spine.trace import with_trace
from ulak.spine.units.records import read_record

log = get_logger("ulak.changes")

PAUSE_SECONDS = 5.0


def to_order(job: Job) -> Order:
    """Return the order of a sync from its payload. A cron entry wraps its payload."""
    given = job.payload.get("payload", job.payload) if isinstance(job.payload, dict) else {}
    try:
        further = (given.get(name) for name in ("inbox", "approves", "ceiling", "digest"))
        return Order(job.id, given["registry"], *further)
    except (KeyError, TypeError, AttributeError):
        raise Permanent("the payload names no registry; it is {'registry': name}") from None


def is_live(tx: Tx, job: int) -> bool:
    found = read_record(tx, job)
    return found is not None and found.settled_at is None


class ChangesJobs:
    def __init__(
        self,
        host: Host,
        section: Section,
        registries: Registries,
        storehouse: Storehouse,
        poster: Poster,
        gauges: ChangesGauges,
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._host = host
        self._section = section
        self._registries = registries
        self._storehouse = storehouse
        self._poster = poster
        self._gauges = gauges
        self._look = look

    # Syncs

    async def sync(self, job: Job) -> Done | Cancel | Snooze:
        order = to_order(job)
        if self._registries.only not in {None, order.registry}:
            return Snooze(PAUSE_SECONDS, f"this process syncs {self._registries.only} only")
        entry, shop = self._registries.get(order.registry), self._shop(order.registry)
        if order.inbox is not None:
            await asyncio.to_thread(shop.claim_files, order.inbox, order.sync)
        held = await self._host.store.write(_begin, order)
        if held is None:
            return self._done(Ending(order.sync, order.registry, SyncVerdict.BUSY, error="another sync is running"))
        run = SyncRun(self._host, self._section, entry, order, held)
        try:
            ending = await run.run()
        except lease.LostLease as error:
            return Cancel(str(error))
        finally:
            await asyncio.to_thread(run.close)
        self._gauges.note(order.registry, run.facts, ending)
        return self._done(ending)

    def _shop(self, registry: str) -> Workshop:
        return Workshop(Path(self._section.folder), registry)

    def _done(self, ending: Ending) -> Done:
        log.info(
            "synced",
            registry=ending.registry,
            verdict=ending.verdict.value,
            error=ending.error,
            rows=sum(change.rows for change in ending.changes.values()),
        )
        result = {
            "syncId": self._host.store.ids.to_text(ending.sync),
            "verdict": ending.verdict.value,
            "error": ending.error,
        }
        return Done(result, unit=partial(end_sync, ending=ending, announcements=self._section.announce))

    # Archives

    async def archive(self, job: Job) -> Done:
        name = job.payload["feed"]
        form = self._registries.feed(name)
        folder = Path(self._section.folder) / "archives" / "work"
        folder.mkdir(parents=True, exist_ok=True)
        rows, fresh = folder / f"{name}-{job.id}.rows", folder / f"{name}-{job.id}.xml.gz"
        try:
            while True:
                feed = await self._head(name)
                if feed is None:
                    return Done({"archive": "none is missing"})
                await export_feed(self._host, feed, rows)
                head = self._archive_head(feed, form.document)
                run = self._host.run if rows.stat().st_size > SMALL_BYTES else asyncio.to_thread
                written: Written = await run(write_archive, form, head, str(rows), str(fresh))
                if not await self._is_pruned_over(feed):
                    break
            _check_whole(feed, written)
            row = _archive_row(feed, written)
            await self._storehouse.keep(name, fresh, row.name)
        finally:
            rows.unlink(missing_ok=True)
            fresh.unlink(missing_ok=True)
        old = await self._host.store.write(_kept_archive, row, self._section.archive_days)
        for one in old:
            await self._storehouse.drop(one.feed, one.name)
        return Done({"archive": row.name})

    async def _head(self, name: str) -> Feed | None:
        """The feed, unless there is an archive of its head already."""
        feed = (await self._host.store.read(records.read_feeds))[name]
        rows = await self._host.store.read(records.list_archives, name, 1)
        return None if feed.stamp is None or (rows and rows[0].pos == feed.head_pos) else feed

    async def _is_pruned_over(self, feed: Feed) -> bool:
        """Whether versions that belong to this head were forgotten while it was read."""
        now = (await self._host.store.read(records.read_feeds))[feed.name]
        return now.floor_pos > feed.head_pos

    def _archive_head(self, feed: Feed, document: str) -> ArchiveHead:
        assert feed.head_stamp is not None or feed.stamp is not None
        return ArchiveHead(
            document,
            istanbul.shown(self._host.store.clock.now() // 1000),
            feed.count,
            str(feed.head),
            istanbul.shown(feed.head_stamp or feed.stamp or 0),
            feed.state_hash,
        )

    # What follows a publication

    async def fan_out(self, job: Job) -> Done | Snooze:
        name = job.payload["feed"]
        form, size = self._registries.feed(name), watches.SLICE
        while True:
            feed = (await self._host.store.read(records.read_feeds))[name]
            end = min(feed.fan_pos + size, feed.head_pos)
            if end <= feed.fan_pos:
                return Done()
            versions, watched = await self._host.store.read(_part, feed, end)
            jobs = watches.jobs_for(
                form, feed.epoch, versions, self._section.rule, watched, self._host.store.ids.to_text
            )
            try:
                await self._host.store.write(with_trace(watches.fan_out, job.trace), name, feed.fan_pos, end, jobs)
            except Refused as error:
                if size == 1:
                    return Snooze(PAUSE_SECONDS, str(error))
                size = max(size // 2, 1)  # as many as there is capacity for

    async def announce(self, job: Job) -> Done:
        """To an address of the settings, or to a watch's webhook with its signature."""
        given = job.payload
        identifier = self._host.store.ids.to_text(job.id)
        if "watch" in given:
            watch = await self._host.store.read(watches.find_watch, given["feed"], given["watch"])
            if watch is None or watch.webhook is None:
                return Done({"dropped": "the watch is gone"})
            url, secret, body = watch.webhook, watch.secret, given["body"]
        else:
            url, secret = given["url"], None
            body = _slack(given) if given["format"] == "slack" else {"event": given["event"], **given["data"]}
        return Done({"status": await self._poster.post(url, codec.encode(body), identifier, secret, job.trace)})

    async def prune(self, job: Job) -> Done:
        """Follows every sync, so this process learns here at the latest that there was one."""
        registry, forgotten = job.payload["registry"], 0
        await self._look()
        await self._drop_files(registry)
        for form in self._registries.get(registry).source.feeds:
            await self._host.store.write(pruning.raise_floor, form.name, self._section.retention_days)
            while await self._host.store.write(pruning.drop_superseded, form.name):
                forgotten += 1
        return Done({"slices": forgotten})

    async def _drop_files(self, registry: str) -> None:
        """Files that a sync needed until its end was committed: an attempt that is killed needs them again."""
        shop = self._shop(registry)
        for sync in await asyncio.to_thread(shop.list_claims):
            if not await self._host.store.read(is_live, sync):
                await asyncio.to_thread(shop.drop_files, sync)
        if await self._host.store.read(_holds_nothing, registry):
            await asyncio.to_thread(shop.release)


def _begin(tx: Tx, order: Order) -> lease.SyncLease | None:
    records.add_sync(tx, order.sync, order.registry)
    return lease.take(tx, order.registry, order.sync, is_live)


def _holds_nothing(tx: Tx, registry: str) -> bool:
    """Whether no list is held back, and no sync is under way that may do so."""
    row = records.read_registry(tx, registry)
    is_busy = row is not None and row.lease_owner is not None and is_live(tx, row.lease_owner)
    return not is_busy and tx.row(records.sql.find_held, registry=registry) is None


def _slack(given: Mapping[str, Any]) -> dict[str, str]:
    data = given["data"]
    numbers = ", ".join(
        f"{name} +{feed['added']} ~{feed['modified']} -{feed['removed']} (withheld {feed['withheld']})"
        for name, feed in data["feeds"].items()
    )
    told = [f"{given['event']}: {data['registry']} {data['verdict']}", data["error"] or "", numbers]
    return {"text": "\n".join(line for line in told if line)}


def _part(tx: Tx, feed: Feed, end: int) -> tuple[list[Any], list[watches.Watch]]:
    versions = records.read_versions(tx, feed.name, feed.fan_pos, end, before=True)
    return versions, watches.list_watches(tx, feed.name)


def _check_whole(feed: Feed, written: Written) -> None:
    if (written.count, written.state_hash) != (feed.count, feed.state_hash):
        raise Permanent(
            f"the archive of {feed.name} at {feed.head} has {written.count} records and another state hash than its "
            "feed; this is a defect of Ulak, please report it"
        )


def _archive_row(feed: Feed, written: Written) -> ArchiveRow:
    stamp = feed.head_stamp or feed.stamp or 0
    cursor = Cursor(feed.epoch, feed.head_pos)
    name = f"{feed.name}-{istanbul.shown(stamp).replace(':', '').replace('-', '')}-{cursor}.xml.gz"
    return ArchiveRow(
        feed.name, feed.head_pos, name, stamp, written.count, written.state_hash, written.bytes, written.digest, 0
    )


def _kept_archive(tx: Tx, row: ArchiveRow, days: int) -> list[ArchiveRow]:
    records.add_archive(tx, row)
    return records.take_old_archives(tx, row.feed, tx.now - days * 86_400_000)
