"""The room's declaration: its handlers, crons, gauges and service, over a host."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ulak.backoff import Backoff
from ulak.changes.feed_reader import FeedReader
from ulak.changes.gauges import ChangesGauges
from ulak.changes.jobs import ChangesJobs
from ulak.changes.model import ANNOUNCE, ARCHIVE, EVENTS, FAN_OUT, PRUNE, SYNC
from ulak.changes.poster import Poster
from ulak.changes.registry import Registries
from ulak.changes.service import Changes
from ulak.changes.storehouse import Storehouse
from ulak.changes.syncing import lease
from ulak.errors import Error, Misconfigured
from ulak.settings import Changes as Section
from ulak.spine.handler import Handler
from ulak.spine.loops.chores import Chores
from ulak.spine.room import Host, Room
from ulak.spine.store import Tx
from ulak.spine.units.cron import CronEntry

REFRESH_SECONDS = 5.0
SYNC_SECONDS = 6 * 3600.0
_SLOW = Backoff(5, 3, 3600)
# The seed's own names: views on PostgreSQL.
TABLES = ("e_invoice_gib_users", "e_despatch_gib_users", "gib_user_changelog", "sync_metadata")


def changes_room(host: Host) -> Room[Changes]:
    section = host.settings.changes
    registries = Registries(section)
    _check_names(section, registries)
    storehouse = Storehouse(Path(section.folder), section.archive_url)
    poster = Poster(tuple(host.settings.channels.webhook.allow), host.clock)
    gauges = ChangesGauges(host.clock, section, registries)
    reader = FeedReader(host, registries, section.retention_days)
    chores = Chores("changes")

    async def look() -> None:
        """A store that is too busy for it now is looked at the next time: gauges do not hold up a start."""
        with contextlib.suppress(Error):
            await host.store.read(gauges.take)
            reader.saw(gauges.feeds)

    jobs = ChangesJobs(host, section, registries, storehouse, poster, gauges, look)

    async def start() -> None:
        await host.store.write(_ensure, registries)
        await look()
        if host.works:  # again and again, for the publications of other processes
            chores.begin(host.clock, "gauges", REFRESH_SECONDS, look)

    async def close() -> None:
        await chores.end()
        await poster.close()

    return Room(
        "changes",
        Changes(host, section, registries, reader, storehouse),
        handlers=(
            Handler(SYNC, jobs.sync, concurrency=4, max_attempts=5, timeout_seconds=SYNC_SECONDS, backoff=_SLOW),
            Handler(ARCHIVE, jobs.archive, concurrency=1, timeout_seconds=SYNC_SECONDS, backoff=_SLOW),
            Handler(ANNOUNCE, jobs.announce, concurrency=20, max_attempts=12, timeout_seconds=30, backoff=_SLOW),
            Handler(FAN_OUT, jobs.fan_out, concurrency=1, timeout_seconds=SYNC_SECONDS, backoff=_SLOW),
            Handler(PRUNE, jobs.prune, concurrency=1, timeout_seconds=SYNC_SECONDS, backoff=_SLOW),
        ),
        crons=tuple(
            CronEntry(f"changes.{name}", entry.cron, SYNC, {"registry": name}, "Europe/Istanbul")
            for name, entry in registries.by_name.items()
            if entry.cron
        ),
        gauges=gauges.points,
        reasons=gauges.reasons,
        start=start,
        close=close,
        tables=TABLES,
    )


def _check_names(section: Section, registries: Registries) -> None:
    """A rule for a feed that nobody publishes, or an event that never comes, would wait for ever without a word."""
    for rule in section.rule:
        if rule.feed not in registries.feeds:
            known = ", ".join(registries.feeds)
            raise Misconfigured(f"changes.rule: no feed {rule.feed!r:.50}; there are: {known}")
        fields = registries.feeds[rule.feed].fields
        if unknown := sorted(set(rule.fields) - set(fields)):
            raise Misconfigured(
                f"changes.rule: {rule.feed} has no field {unknown[0]!r:.50}; it has: {', '.join(fields)}"
            )
    for one in section.announce:
        if unknown := sorted(set(one.events) - set(EVENTS)):
            raise Misconfigured(f"changes.announce: no event {unknown[0]!r:.50}; there are: {', '.join(EVENTS)}")


def _ensure(tx: Tx, registries: Registries) -> None:
    for name, entry in registries.by_name.items():
        lease.ensure_registry(tx, name, entry.source.feeds)
