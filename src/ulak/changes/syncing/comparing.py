"""Reads a sync's files and compares them with what is published, on the engine's processes; keeps their caches."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ulak.changes import records
from ulak.changes.model import Feed, LastList
from ulak.changes.pipeline.differ import (
    REMOVED,
    Comparison,
    Current,
    Delta,
    DiffResult,
    compare,
    list_keys,
)
from ulak.changes.pipeline.fingerprints import Binding, open_fingerprints
from ulak.changes.pipeline.keeper import Keeping, keep_fingerprints
from ulak.changes.pipeline.reader import Reading, ReadResult, read_list
from ulak.changes.pipeline.runs import read_frames, read_whole_frames, write_frames
from ulak.changes.sources.source import Source
from ulak.changes.syncing.workshop import Workshop
from ulak.settings import Changes as Section
from ulak.spine import probe
from ulak.spine.room import Host

T = TypeVar("T")

PAGE = 1000
# Below this a thread is faster than the way to a process and back, and takes nobody's time.
SMALL_BYTES = 65_536


@dataclass(slots=True)
class Facts:
    """What was seen on the way, for metrics."""

    records: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    guards: Mapping[tuple[str, str], float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    mixed: int = 0
    duplicates: int = 0


class Comparer:
    def __init__(self, host: Host, section: Section, source: Source, shop: Workshop, last: LastList) -> None:
        self._host = host
        self._section = section
        self._source = source
        self._shop = shop
        self._last = last if last.salt else replace(last, salt=secrets.token_hex(16))
        self._read: list[ReadResult] = []
        self._small = True
        self.folder = Path()
        self.feeds: dict[str, Feed] = {}
        self.facts = Facts()

    async def run(self, paths: Mapping[str, Path], sizes: dict[str, int]) -> DiffResult:
        """The delta of each feed. Without caches, or with one that does not fit, everything is read."""
        self.facts.bytes = sizes
        self._small = sum(sizes.values()) < SMALL_BYTES
        caches = await asyncio.to_thread(self._caches)
        self._read = await self.timed("read", self._read_all(paths, caches))
        if caches and any(one.whole for one in self._read):  # a cache was damaged
            self._read = await self.timed("read", self._read_all(paths, {}))
        diff = await self._compare()
        if diff.doubled:  # an identifier has come to have two blocks, of which only one was read
            self._read = await self.timed("read", self._read_all(paths, {}))
            diff = await self._compare()
        return diff

    # Reading

    def _binding(self, sync: int) -> Binding:
        epochs = "+".join(feed.epoch for _, feed in sorted(self.feeds.items()))
        return Binding(epochs, sync, f"{self._source.version} {self._section.compare}")

    def _caches(self) -> dict[str, str]:
        """What every role has, or nothing: a list is read whole or as a difference."""
        found: dict[str, str] = {}
        for role in self._source.roles:
            path = self._shop.cache(role, self._last.sync)
            known = open_fingerprints(path, self._binding(self._last.sync))
            if known is None:
                return {}
            with known:
                found[role] = str(path)
        return found

    async def _read_all(self, paths: Mapping[str, Path], caches: Mapping[str, str]) -> list[ReadResult]:
        salt, binding = bytes.fromhex(self._last.salt), self._binding(self._last.sync)
        batch, folder = self._section.batch_size, str(self.folder)
        readings = [
            Reading(self._source, role, str(paths[role]), folder, batch, salt, caches.get(role), binding)
            for role in self._source.roles
        ]
        results: list[ReadResult] = await asyncio.gather(*(self._away(read_list, reading) for reading in readings))
        for one in results:
            self.facts.records[one.role], self.facts.bad[one.role] = one.records, one.bad
        return results

    # Comparing

    async def _compare(self) -> DiffResult:
        runs = tuple(path for one in self._read for path in one.runs)
        whole = any(one.whole for one in self._read)
        current = {name: str(self.folder / f"{name}.current") for name in self.feeds}
        await self.timed("export", self._export_all(current) if whole else self._export(runs, current))
        task = Comparison(
            self._source,
            runs,
            str(self.folder),
            current,
            whole,
            self._section.compare == "seed",
            sum(one.unnamed for one in self._read),
        )
        diff: DiffResult = await self.timed("compare", self._away(compare, task))
        self.facts.duplicates = diff.duplicates
        self.facts.mixed = sum(delta.mixed for delta in diff.feeds.values())
        return diff

    async def _export(self, runs: tuple[str, ...], current: Mapping[str, str]) -> None:
        """The published records of the keys that the runs speak of."""
        keys = self.folder / "keys"
        await self._away(list_keys, runs, str(keys))
        for name, feed in self.feeds.items():
            with Path(current[name]).open("wb") as file:  # noqa: ASYNC230 - a page at a time, into the page cache
                for frame in read_whole_frames(keys):
                    found = await self._host.store.read(records.find_records, name, frame, feed.head_pos)
                    write_frames(file, found)

    async def _export_all(self, current: Mapping[str, str]) -> None:
        for name, feed in self.feeds.items():
            await export_feed(self._host, feed, Path(current[name]))

    # Keeping

    async def keep(
        self, sync: int, known: dict[str, dict[str, str]], digest: str, diff: DiffResult, withheld: Sequence[str]
    ) -> LastList:
        """Caches of this list for the next sync; they count only if this one is published."""
        if not any(one.repeats for one in self._read):
            held = (diff.held, await asyncio.to_thread(self._list_withheld, diff, withheld))
            tasks = [self._keeping(number, one, sync, held) for number, one in enumerate(self._read)]
            await asyncio.gather(*(self._away(keep_fingerprints, task) for task in tasks))
        version, how = self._source.version, self._section.compare
        return LastList(sync, digest, version, how, bool(withheld), self._last.salt, known)

    def _keeping(self, number: int, one: ReadResult, sync: int, held: tuple[str, ...]) -> Keeping:
        old = None if one.whole else str(self._shop.cache(one.role, self._last.sync))
        path = str(self._shop.cache(one.role, sync))
        return Keeping(number, tuple(one.runs), old, one.seen, held, path, self._binding(sync))

    def _list_withheld(self, diff: DiffResult, withheld: Sequence[str]) -> str:
        path = self.folder / "withheld"
        with path.open("wb") as file:
            for name in withheld:
                deltas = (Delta(*row) for row in read_frames(Path(diff.feeds[name].path)))
                write_frames(file, (delta.key for delta in deltas if delta.change == REMOVED))
        return str(path)

    async def _away(self, function: Any, /, *args: Any) -> Any:
        if self._small:
            return await asyncio.to_thread(function, *args)
        return await self._host.run(function, *args)

    async def timed(self, step: str, work: Awaitable[T]) -> T:
        probe.reach(f"changes.{step}")
        began = self._host.clock.monotonic()
        result = await work
        self.facts.steps[step] = self._host.clock.monotonic() - began
        return result


async def export_feed(host: Host, feed: Feed, path: Path) -> int:
    """Write every record of a feed at its head, in the order of keys; returns how many."""
    after, count = records.FIRST_KEY, 0
    with path.open("wb") as file:
        while True:
            page: list[Current] = await host.store.read(
                records.list_records, feed.name, after, records.LAST_KEY, feed.head_pos, PAGE
            )
            write_frames(file, page)
            count += len(page)
            if len(page) < PAGE:
                return count
            after = page[-1].key
