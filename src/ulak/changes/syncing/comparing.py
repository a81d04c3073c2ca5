"""Reads a sync's files and compares them with what is published, on the engine's processes; keeps their caches."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ulak.changes import records
from ulak.changes.model import Feed, LastList
from ulak.changes.pipeline.collector import without_collector
from ulak.changes.pipeline.differ import REMOVED, Comparison, Current, DiffResult, compare, join_results
from ulak.changes.pipeline.fingerprints import Binding, open_fingerprints
from ulak.changes.pipeline.keeper import Keeping, keep_fingerprints
from ulak.changes.pipeline.reader import Reading, ReadResult, read_list
from ulak.changes.pipeline.spill import by_key, write_frames
from ulak.changes.sources.source import Source
from ulak.changes.state import ALL_BUCKETS, range_of
from ulak.changes.syncing.workshop import Workshop
from ulak.settings import Changes as Section
from ulak.spine import probe
from ulak.spine.room import Host

T = TypeVar("T")

PAGE = 1000
# A list that is read whole is compared by so many processes, each with its part of the keys.
SHARES = 2
# Below this a thread is faster than the way to a process and back, and takes nobody's time.
SMALL_BYTES = 65_536


@dataclass(slots=True)
class Facts:
    """Figures that were seen on the way, for metrics."""

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
        """Return the caches that every role has, or none: a list is read whole or as a difference."""
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
        whole = any(one.whole for one in self._read)
        number = SHARES if whole and not self._small else 1
        size = len(ALL_BUCKETS) // number
        shares = [ALL_BUCKETS[begin : begin + size] for begin in range(0, len(ALL_BUCKETS), size)]
        tasks = [self._comparison(share, whole=whole) for share in shares]
        await self.timed("export", self._export_all(tasks) if whole else self._export(tasks[0]))
        diffs = await self.timed("compare", asyncio.gather(*(self._away(compare, task) for task in tasks)))
        diff = join_results(diffs)
        self.facts.duplicates = diff.duplicates
        self.facts.mixed = sum(delta.mixed for delta in diff.feeds.values())
        return diff

    def _comparison(self, buckets: Sequence[str], *, whole: bool) -> Comparison:
        return Comparison(
            self._source,
            tuple(one.spill for one in self._read),
            str(self.folder),
            {name: str(self.folder / f"{name}-{buckets[0]}.current") for name in self.feeds},
            whole,
            self._section.compare == "seed",
            sum(one.unnamed for one in self._read),
            buckets,
        )

    async def _export(self, task: Comparison) -> None:
        """The published records of the keys that the spills speak of."""
        keys = (key for key, _ in by_key(task.spills))
        with contextlib.ExitStack() as stack:
            files = {  # a page at a time, into the page cache
                name: stack.enter_context(Path(path).open("wb"))  # noqa: ASYNC230
                for name, path in task.current.items()
            }
            while page := await asyncio.to_thread(lambda: list(islice(keys, PAGE))):
                for name, feed in self.feeds.items():
                    found = await self._host.store.read(records.find_records, name, page, feed.head_pos)
                    write_frames(files[name], found)

    async def _export_all(self, tasks: Sequence[Comparison]) -> None:
        for task in tasks:
            for name, feed in self.feeds.items():
                _, beyond = range_of(int(task.buckets[-1], 16))
                await export_feed(self._host, feed, Path(task.current[name]), task.buckets[0], beyond)

    # Keeping

    async def keep(
        self, sync: int, known: dict[str, dict[str, str]], digest: str, diff: DiffResult, withheld: Sequence[str]
    ) -> LastList:
        """Caches of this list for the next sync; they count only if this one is published."""
        if not any(one.repeats for one in self._read):
            held = (*diff.held, await asyncio.to_thread(self._list_withheld, diff, withheld))
            tasks = [self._keeping(one, sync, held) for one in self._read]
            await asyncio.gather(*(self._away(keep_fingerprints, task) for task in tasks))
        version, how = self._source.version, self._section.compare
        return LastList(sync, digest, version, how, bool(withheld), self._last.salt, known)

    def _keeping(self, one: ReadResult, sync: int, held: tuple[str, ...]) -> Keeping:
        old = None if one.whole else str(self._shop.cache(one.role, self._last.sync))
        return Keeping(one.spill, old, one.seen, held, str(self._shop.cache(one.role, sync)), self._binding(sync))

    def _list_withheld(self, diff: DiffResult, withheld: Sequence[str]) -> str:
        path = self.folder / "withheld"
        with path.open("wb") as file:
            for name in withheld:
                write_frames(file, (delta.key for delta in diff.feeds[name].deltas() if delta.change == REMOVED))
        return str(path)

    async def _away(self, function: Any, /, *args: Any) -> Any:
        if self._small:
            return await asyncio.to_thread(function, *args)
        return await self._host.run(without_collector, function, *args)

    async def timed(self, step: str, work: Awaitable[T]) -> T:
        probe.reach(f"changes.{step}")
        began = self._host.clock.monotonic()
        result = await work
        self.facts.steps[step] = self._host.clock.monotonic() - began
        return result


async def export_feed(
    host: Host, feed: Feed, path: Path, after: str = records.FIRST_KEY, beyond: str = records.LAST_KEY
) -> None:
    """Write every record of a feed at its head, in the order of keys."""
    with path.open("wb") as file:
        while True:
            page: list[Current] = await host.store.read(
                records.list_records, feed.name, after, beyond, feed.head_pos, PAGE
            )
            write_frames(file, page)
            if len(page) < PAGE:
                return
            after = page[-1].key
