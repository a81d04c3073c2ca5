"""The pipeline without a store: published records in dictionaries, one list after another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ulak.changes.pipeline.differ import (
    REMOVED,
    Comparison,
    Current,
    Delta,
    compare,
)
from ulak.changes.pipeline.fingerprints import Binding
from ulak.changes.pipeline.keeper import Keeping, keep_fingerprints
from ulak.changes.pipeline.reader import Reading, read_list
from ulak.changes.pipeline.spill import write_frames
from ulak.changes.sources.gib import GibSource
from ulak.changes.state import Sums, state_hash, to_identifier


def hash_of(records: Iterable[tuple[str, bytes]]) -> str:
    """The state hash of (key, record hash), summed up one by one."""
    total = Sums()
    for key, record in records:
        total.add(key, record)
    return state_hash(total.packed())


class Shelf:
    def __init__(self, folder: Path, source=None, *, batch: int = 25_000, caches: bool = True) -> None:
        self.folder = folder
        self.source = source or GibSource()
        self.batch = batch
        self.caches = caches
        self.number = 0
        self.published = {form.name: {} for form in self.source.feeds}
        self.last_diff = None
        self.last_read = []
        self.fell_back = 0
        self._old: dict[str, str] = {}

    def take(self, paths: dict[str, Path], *, withhold: bool = False) -> dict[str, list[Delta]]:
        """Read a list, apply its delta; returns the changes of each feed."""
        self.number += 1
        work = self.folder / str(self.number)
        work.mkdir(parents=True)
        old = self._old if self.caches else {}
        read, diff = self._run(work, paths, old)
        if diff.doubled:
            self.fell_back += 1
            old = {}
            read, diff = self._run(work, paths, old)
        self.last_diff, self.last_read = diff, read
        deltas = {feed: list(one.deltas()) for feed, one in diff.feeds.items()}
        withheld = work / "withheld"
        with withheld.open("wb") as file:
            for feed, rows in deltas.items():
                self._apply(feed, rows, file, withhold=withhold)
        if not any(one.repeats for one in read):
            self._keep(work, read, old, (*diff.held, str(withheld)))
        return deltas

    def _run(self, work, paths, old):
        read = [self._read(work, role, path, old.get(role)) for role, path in paths.items()]
        return read, self._compare(work, read)

    def _read(self, work, role, path, cache):
        binding = Binding("e", self.number - 1, self.source.version)
        return read_list(Reading(self.source, role, str(path), str(work), self.batch, b"salt", cache, binding))

    def _compare(self, work, read):
        current = {}
        for feed, rows in self.published.items():
            current[feed] = str(work / f"{feed}.current")
            with Path(current[feed]).open("wb") as file:
                write_frames(file, [rows[key] for key in sorted(rows)])
        spills = tuple(one.spill for one in read)
        unnamed = sum(one.unnamed for one in read)
        return compare(Comparison(self.source, spills, str(work), current, read[0].whole, unnamed=unnamed))

    def _apply(self, feed, rows, file, *, withhold):
        for row in rows:
            if row.change != REMOVED:
                self.published[feed][row.key] = Current(row.key, row.hash, row.content_hash, row.parts, row.body)
            elif withhold:
                write_frames(file, [row.key])
            else:
                del self.published[feed][row.key]

    def _keep(self, work, read, old, held):
        binding = Binding("e", self.number, self.source.version)
        self._old = {one.role: str(work / f"{one.role}.fp") for one in read}
        for one in read:
            keep_fingerprints(Keeping(one.spill, old.get(one.role), one.seen, held, self._old[one.role], binding))

    def state(self) -> dict[str, str]:
        return {feed: hash_of((key, row.hash) for key, row in rows.items()) for feed, rows in self.published.items()}

    def identifiers(self, feed: str = "einvoice") -> set[str]:
        return {to_identifier(key) for key in self.published[feed]}
