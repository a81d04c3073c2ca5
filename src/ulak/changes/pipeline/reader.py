"""Reads one downloaded file on an engine process: known blocks are counted, the others parsed and spilled."""

from __future__ import annotations

import contextlib
import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ulak.changes.pipeline.fingerprints import Binding, Fingerprints, open_fingerprints
from ulak.changes.pipeline.spill import BAD, PARSED, VANISHED, SpillEntry, SpillFile, SpillWriter
from ulak.changes.sources.source import BadRecord, Source, Unfit
from ulak.changes.sources.unpack import unpacked
from ulak.changes.state import to_key

MAX_BAD_SHARE = 0.001
MAX_IDENTIFIER = 500  # characters: what a route takes, and an index of PostgreSQL
_ENDINGS = {"csv": ".csv", "jsonl": ".jsonl"}


@dataclass(frozen=True, slots=True)
class Reading:
    """An order to read a list into a folder."""

    source: Source
    role: str
    path: str
    folder: str
    batch: int
    salt: bytes
    cache: str | None = None
    binding: Binding | None = None


@dataclass(slots=True)
class ReadResult:
    role: str
    records: int = 0
    parsed: int = 0
    bad: int = 0
    unnamed: int = 0
    vanished: int = 0
    whole: bool = True
    repeats: bool = False
    spill: SpillFile = field(default_factory=SpillFile)
    seen: str | None = None
    first_complaint: str = ""


def read_list(reading: Reading) -> ReadResult:
    """Raises Unfit, with the role, for a file of which nothing may be published."""
    writer = SpillWriter(Path(reading.folder) / f"{reading.role}.spill", reading.batch)
    try:
        with writer:
            return _Read(reading, writer).run()
    except Unfit as error:
        raise Unfit(f"{reading.role}: {error}") from error


class _Read:
    def __init__(self, reading: Reading, writer: SpillWriter) -> None:
        self._reading = reading
        self._source = reading.source
        self._number = reading.source.roles.index(reading.role)
        self._writer = writer
        # Keyed, so that nobody outside can make two blocks alike.
        self._keyed = hashlib.blake2b(digest_size=8, key=reading.salt)
        self.result = ReadResult(reading.role)

    def run(self) -> ReadResult:
        ending = _ENDINGS.get(getattr(self._source, "format", ""), ".xml")
        reading, known = self._reading, None
        with contextlib.ExitStack() as stack:
            if reading.cache is not None and reading.binding is not None:
                known = open_fingerprints(Path(reading.cache), reading.binding)
            if known is not None:
                stack.enter_context(known)
            opened = stack.enter_context(unpacked(Path(reading.path), self._source.compression, ending))
            batches = self._source.blocks(reading.role, opened)
            if known is None:
                self._read(batches)
            else:
                self._skim(batches, known)
        self.result.spill = self._writer.finish()
        self._judge()
        return self.result

    def _read(self, batches: Iterator[Sequence[bytes]]) -> None:
        copy, to_int = self._keyed.copy, int.from_bytes
        for batch in batches:
            for block in batch:
                keyed = copy()
                keyed.update(block)
                self._take(block, to_int(keyed.digest(), "little"))

    def _skim(self, batches: Iterator[Sequence[bytes]], known: Fingerprints) -> None:
        """A block that was read last time is only counted: this loop is the cost of a list that hardly changed."""
        result, copy, to_int = self.result, self._keyed.copy, int.from_bytes
        marks, seen, count = known.marks, known.seen, known.count
        result.whole = False
        for batch in batches:
            for block in batch:
                keyed = copy()
                keyed.update(block)
                mark = to_int(keyed.digest(), "little")
                place = bisect_left(marks, mark)
                if place < count and marks[place] == mark:
                    seen[place] = 1
                    result.records += 1
                else:
                    self._take(block, mark)
        for key in known.vanished():
            result.vanished += 1
            self._writer.add(SpillEntry(key, self._number, VANISHED, 0, None))
        path = Path(self._reading.folder) / f"{self._reading.role}.seen"
        path.write_bytes(seen)
        result.seen = str(path)

    def _take(self, block: bytes, mark: int) -> None:
        result = self.result
        result.records += 1
        if result.records == 1 and self._source.repeats(block):
            result.repeats = True
        try:
            parsed = self._source.parse(self._reading.role, block)
            if len(parsed.identifier) > MAX_IDENTIFIER:
                raise BadRecord(f"its identifier has more than {MAX_IDENTIFIER} characters")
        except BadRecord as error:
            self._miss(block, mark, error)
            return
        result.parsed += 1
        self._writer.add(SpillEntry(to_key(parsed.identifier), self._number, PARSED, mark, parsed.parts))

    def _miss(self, block: bytes, mark: int, error: BadRecord) -> None:
        result = self.result
        result.bad += 1
        result.first_complaint = result.first_complaint or f"record {result.records}: {error}"
        identifier = self._source.identify(block)
        if identifier is None:
            result.unnamed += 1
        else:
            self._writer.add(SpillEntry(to_key(identifier), self._number, BAD, mark, None))

    def _judge(self) -> None:
        result = self.result
        if not result.records:
            raise Unfit("it has 0 records")
        if result.bad > MAX_BAD_SHARE * result.records:
            share = f"{result.bad} of {result.records} records can't be read, more than {MAX_BAD_SHARE:.1%}"
            raise Unfit(f"{share}; {result.first_complaint}")
