"""Reads one downloaded file on an engine process: known blocks are counted, the others parsed and spilled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ulak.changes.pipeline.fingerprints import Binding, Fingerprints, marker, open_fingerprints
from ulak.changes.pipeline.runs import BAD, PARSED, VANISHED, RunEntry, RunWriter
from ulak.changes.sources.source import BadRecord, Source, Unfit
from ulak.changes.sources.unpack import unpacked
from ulak.changes.state import to_key

MAX_BAD_SHARE = 0.001
_ENDINGS = {"csv": ".csv", "jsonl": ".jsonl"}
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read, and into which folder."""

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
    runs: list[str] = field(default_factory=list)
    seen: str | None = None
    first_complaint: str = ""


def read_list(reading: Reading) -> ReadResult:
    """Raises Unfit, with the role, for a file of which nothing may be published."""
    try:
        return _Read(reading).run()
    except Unfit as error:
        raise Unfit(f"{reading.role}: {error}") from error


class _Read:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._source = reading.source
        self._number = reading.source.roles.index(reading.role)
        self._writer = RunWriter(Path(reading.folder), reading.role, reading.batch)
        self._mark = marker(reading.salt)
        self.result = ReadResult(reading.role)

    def run(self) -> ReadResult:
        reading, result = self._reading, self.result
        known = None
        if reading.cache is not None and reading.binding is not None:
            known = open_fingerprints(Path(reading.cache), reading.binding)
        ending = _ENDINGS.get(getattr(self._source, "format", ""), ".xml")
        with unpacked(Path(reading.path), self._source.compression, ending) as opened:
            blocks = self._source.blocks(reading.role, opened)
            if known is None:
                for block in blocks:
                    self._take(block, self._mark(block))
            else:
                with known:
                    self._skim(blocks, known)
        self._writer.flush()
        result.runs = self._writer.paths
        self._judge()
        return result

    def _skim(self, blocks: Iterator[bytes], known: Fingerprints) -> None:
        result, mark, meet = self.result, self._mark, known.meet
        result.whole = False
        for block in blocks:
            own = mark(block)
            if meet(own):
                result.records += 1
            else:
                self._take(block, own)
        for key in known.vanished():
            result.vanished += 1
            self._writer.add(RunEntry(key, self._number, -result.vanished, VANISHED, 0, b""))
        seen = Path(self._reading.folder) / f"{self._reading.role}.seen"
        seen.write_bytes(known.seen)
        result.seen = str(seen)

    def _take(self, block: bytes, mark: int) -> None:
        result = self.result
        result.records += 1
        if result.records == 1 and self._source.repeats(block):
            result.repeats = True
        try:
            parsed = self._source.parse(self._reading.role, block)
        except BadRecord as error:
            self._miss(block, mark, error)
            return
        result.parsed += 1
        self._writer.add(
            RunEntry(to_key(parsed.identifier), self._number, result.records, PARSED, mark, _encode(parsed.parts))
        )

    def _miss(self, block: bytes, mark: int, error: BadRecord) -> None:
        result = self.result
        result.bad += 1
        result.first_complaint = result.first_complaint or f"record {result.records}: {error}"
        identifier = self._source.identify(block)
        if identifier is None:
            result.unnamed += 1
        else:
            self._writer.add(RunEntry(to_key(identifier), self._number, result.records, BAD, mark, b""))

    def _judge(self) -> None:
        result = self.result
        if not result.records:
            raise Unfit("it has 0 records")
        if result.bad > MAX_BAD_SHARE * result.records:
            share = f"{result.bad} of {result.records} records can't be read, more than {MAX_BAD_SHARE:.1%}"
            raise Unfit(f"{share}; {result.first_complaint}")
