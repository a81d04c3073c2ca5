"""One sync from its files to its ending: fetch, compare, judge, write above the head. Its job publishes it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ulak.changes import decide, records
from ulak.changes.answers import WORDS
from ulak.changes.decide import GuardLimits, GuardVerdict
from ulak.changes.model import Feed, SyncVerdict
from ulak.changes.pipeline.differ import REMOVED, Delta, DiffResult, FeedDelta
from ulak.changes.registry import RegistryEntry
from ulak.changes.sources.source import Unfit
from ulak.changes.state import to_identifier
from ulak.changes.syncing import lease
from ulak.changes.syncing.comparing import Comparer
from ulak.changes.syncing.fetching import Fetcher, ListFiles, Order
from ulak.changes.syncing.lease import SyncLease
from ulak.changes.syncing.publication import Ending, FeedChange
from ulak.changes.syncing.workshop import Workshop
from ulak.settings import Changes as Section
from ulak.spine import probe
from ulak.spine.loops.bulk import analyze_tables, write_in_slices
from ulak.spine.room import Host

MAX_SAMPLE = 100
MIN_ROWS = 100  # about a millisecond; without a floor, slices shrink to a few rows on a busy machine


class SyncRun:
    """The state of one sync under way."""

    def __init__(self, host: Host, section: Section, entry: RegistryEntry, order: Order, held: SyncLease) -> None:
        self._host = host
        self._section = section
        self._entry = entry
        self._source = entry.source
        self._order = order
        self._lease = held
        self._last = held.last
        self._shop = Workshop(Path(section.folder), entry.name)
        self._comparer = Comparer(host, section, entry.source, self._shop, held.last)
        self.facts = self._comparer.facts

    async def run(self) -> Ending:
        """Return how the sync ended; a list that is unfit is one of the endings."""
        try:
            self._comparer.folder = await asyncio.to_thread(self._shop.begin, self._order.sync, self._last.sync)
            return await self._run()
        except Unfit as error:
            return self._ending(SyncVerdict.REFUSED, error=str(error))
        except OSError as error:
            return self._ending(SyncVerdict.REFUSED, error=f"a file can't be read or written: {error}")

    def close(self) -> None:
        self._shop.end(self._order.sync)

    async def _run(self) -> Ending:
        comparer = self._comparer
        feeds = await self._host.store.read(records.read_feeds)
        comparer.feeds = {form.name: feeds[form.name] for form in self._source.feeds}
        fetcher = Fetcher(self._entry, self._shop, self._last, self._section.download_timeout_seconds)
        files = await comparer.timed("fetch", fetcher.fetch(self._order, comparer.folder))
        if self._is_unchanged(files):
            last = replace(self._last, files=files.known)
            return self._ending(SyncVerdict.UNCHANGED, last=last, digest=files.digest)
        diff = await comparer.run(files.paths, files.sizes())
        files.refuse_twins()  # last, since every other complaint says more
        return await self._judge(files, diff)

    def _is_unchanged(self, files: ListFiles) -> bool:
        """The same bytes, read in the same way, of which nothing was withheld."""
        last = self._last
        same = not files.paths or files.digest == last.digest
        same_way = (last.version, last.compare) == (self._source.version, self._section.compare)
        return same and same_way and self._order.ceiling is None and not last.withheld

    # Judging

    async def _judge(self, files: ListFiles, diff: DiffResult) -> Ending:
        feeds = self._comparer.feeds
        for name, delta in diff.feeds.items():
            if decide.is_swapped(feeds[name], delta):
                raise Unfit(f"{' and '.join(self._source.roles)} are swapped: aliases of {name} changed their roles")
        verdict = decide.judge(feeds, diff.feeds, self._limits(accepted=await self._is_accepted(files.digest)))
        self.facts.guards = verdict.values
        if verdict.quarantine is not None:
            await asyncio.to_thread(self._shop.hold, files.paths, files.known)
            preview = _preview(diff.feeds, None, self._guards(verdict))
            given = {"error": verdict.quarantine, "digest": files.digest, "preview": preview}
            return self._ending(SyncVerdict.QUARANTINED, **given)
        self._check_ceiling(diff.feeds)
        return await self._publish(files, diff, verdict)

    async def _publish(self, files: ListFiles, diff: DiffResult, verdict: GuardVerdict) -> Ending:
        comparer, withheld = self._comparer, sorted(verdict.withheld)
        keep = comparer.keep(self._order.sync, files.known, files.digest, diff, withheld)
        keeping = asyncio.ensure_future(comparer.timed("keep", keep))
        try:
            changes = await comparer.timed("write", self._write(diff.feeds, verdict))
            last = await keeping
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        given: dict[str, Any] = {"changes": changes, "last": last, "digest": files.digest}
        if withheld:
            await asyncio.to_thread(self._shop.hold, files.paths, files.known)
            given["preview"] = _preview({name: diff.feeds[name] for name in withheld}, REMOVED, self._guards(verdict))
            given["error"] = self._why_withheld(diff, withheld)
            return self._ending(SyncVerdict.WITHHELD, **given)
        rows = sum(change.rows for change in changes.values())
        probe.reach("changes.judged")
        return self._ending(SyncVerdict.PUBLISHED if rows else SyncVerdict.UNCHANGED, **given)

    def _guards(self, verdict: GuardVerdict) -> dict[str, dict[str, dict[str, float]]]:
        """By feed and guard: its value and its limit, both in per cent."""
        bounds = self._limits(accepted=False).bounds
        found: dict[str, dict[str, dict[str, float]]] = {}
        for (feed, guard), value in verdict.values.items():
            found.setdefault(feed, {})[guard] = {"value": round(value, 3), "limit": bounds[guard]}
        return found

    def _why_withheld(self, diff: DiffResult, withheld: list[str]) -> str:
        told = (
            f"{name}: {diff.feeds[name].removed} of {self._comparer.feeds[name].count} would be removed, "
            f"more than {self._section.removal_percent:g} %"
            for name in withheld
        )
        return f"{'; '.join(told)}; removals are withheld"

    def _limits(self, *, accepted: bool) -> GuardLimits:
        section = self._section
        return GuardLimits(
            section.removal_percent,
            section.removal_floor,
            section.guard_floor,
            section.modified_percent,
            section.alias_loss_percent,
            section.count_percent,
            sys.maxsize if accepted else self._order.ceiling,
        )

    async def _is_accepted(self, digest: str) -> bool:
        """Whether the same list was put into quarantine so often that it is meant."""
        wanted = self._section.accept_after
        if not wanted:
            return False
        seen = await self._host.store.read(records.list_digests, self._entry.name, self._order.sync, wanted)
        return seen == [(SyncVerdict.QUARANTINED, digest)] * wanted

    def _check_ceiling(self, deltas: Mapping[str, FeedDelta]) -> None:
        ceiling = self._order.ceiling
        total = sum(delta.added + delta.modified + delta.removed for delta in deltas.values())
        if ceiling is not None and total > ceiling:
            raise Unfit(f"it would change {total} records, more than the {ceiling} that were approved")

    # Writing above the head

    async def _write(self, deltas: Mapping[str, FeedDelta], verdict: GuardVerdict) -> dict[str, FeedChange]:
        changes = {}
        for name, delta in deltas.items():
            feed, withheld = self._comparer.feeds[name], name in verdict.withheld
            while await self._host.store.write(lease.clear_above, self._lease, name, feed.head_pos):
                pass
            await self._append(feed, delta, withheld=withheld)
            changes[name] = _change(feed, delta, withheld=withheld)
        if any(change.initial for change in changes.values()):  # or PostgreSQL sorts the table for every page
            await analyze_tables(self._host.store, "changes_version", "changes_title", "changes_publication")
        probe.reach("changes.written")
        return changes

    async def _append(self, feed: Feed, delta: FeedDelta, *, withheld: bool) -> None:
        """In short slices, so that jobs beside them hardly wait."""
        wanted = (row for row in delta.deltas() if not (withheld and row.change == REMOVED))
        unit = partial(lease.append, held=self._lease, feed=feed.name, sync=self._order.sync)
        await write_in_slices(self._host.store, unit, enumerate(wanted, feed.head_pos + 1), least=MIN_ROWS)

    def _ending(self, verdict: SyncVerdict, **given: Any) -> Ending:
        last, cause = self._last, "source"
        if last.version and last.version != self._source.version:
            cause = "parser"
        elif last.compare and last.compare != self._section.compare:
            cause = "rebase"
        approved = self._order.approves is not None
        return Ending(self._order.sync, self._entry.name, verdict, self._lease, cause=cause, approved=approved, **given)


def _change(feed: Feed, delta: FeedDelta, *, withheld: bool) -> FeedChange:
    return FeedChange(
        delta.added,
        delta.modified,
        0 if withheld else delta.removed,
        delta.removed if withheld else 0,
        decide.is_initial(feed, delta),
        (delta.kept,) if withheld else (delta.kept, delta.gone),
        (delta.aliases,) if withheld else (delta.aliases, delta.gone_aliases),
    )


def _preview(
    deltas: Mapping[str, FeedDelta], only: int | None, guards: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a preview of a list that is held back: numbers of each feed, its guards, and the first of the changes."""
    return {
        name: {
            "added": 0 if only else delta.added,
            "modified": 0 if only else delta.modified,
            "removed": delta.removed,
            "guards": guards.get(name, {}),
            "changes": [
                {
                    "identifier": to_identifier(row.key),
                    "changeType": WORDS[row.change],
                    "record": None if row.body is None else msgspec.json.decode(row.body),
                }
                for row in _first(delta, only)
            ],
        }
        for name, delta in deltas.items()
    }


def _first(delta: FeedDelta, only: int | None) -> list[Delta]:
    return list(islice((row for row in delta.deltas() if only is None or row.change == only), MAX_SAMPLE))
