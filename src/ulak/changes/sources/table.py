"""Generic lists: CSV, JSON lines and XML, with a key and fields that the settings name. One file, one feed."""

from __future__ import annotations

import codecs
import csv
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, ClassVar
from xml.etree import ElementTree as ET

import msgspec

from ulak.changes import turkish
from ulak.changes.sources.cut import CHUNK_BYTES, MAX_BLOCK_BYTES, bare_block, cut
from ulak.changes.sources.source import BadRecord, FeedForm, Merged, Opened, Parsed, Unfit

LIST = "list"
BATCH = 500
# What no archive can carry, being XML, and no PostgreSQL store.
_unfit = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]").search


@dataclass(frozen=True, slots=True)
class TableSource:
    """`columns` maps each published name to where it stands in the source: a column, a member, or an XML path."""

    registry: str
    format: str
    key: str
    columns: Mapping[str, str]
    record: str = ""
    delimiter: str = ","
    encoding: str = "utf-8"
    compression: str = "none"
    roles: tuple[str, ...] = (LIST,)
    version: str = field(init=False)
    prefix: ClassVar[str] = "table-1"

    def __post_init__(self) -> None:
        form = [self.format, self.key, sorted(self.columns.items()), self.record, self.delimiter, self.encoding]
        told = msgspec.json.encode(form)
        object.__setattr__(self, "version", f"{self.prefix}-{hashlib.sha256(told).hexdigest()[:12]}")

    @property
    def feeds(self) -> tuple[FeedForm, ...]:
        names = tuple(self.columns)
        return (FeedForm(self.registry, names, "title" if "title" in names else names[0], self.registry),)

    def blocks(self, role: str, opened: Opened) -> Iterator[Sequence[bytes]]:
        if self.format == "xml":
            return cut(opened.stream, self.record, None, self.encoding)
        return self._batches(self._rows(opened.stream) if self.format == "csv" else self._lines(opened.stream))

    @staticmethod
    def _batches(found: Iterator[bytes]) -> Iterator[Sequence[bytes]]:
        batch = tuple(islice(found, BATCH))
        if not batch:
            raise Unfit("it has 0 records")
        while batch:
            yield batch
            batch = tuple(islice(found, BATCH))

    def repeats(self, block: bytes) -> bool:
        return False

    def parse(self, role: str, block: bytes) -> Parsed:
        if self.format == "xml":
            find = self._find_in_element(bare_block(block, self.record))
        else:
            find = self._find_in_object(block)
        identifier = (find(self.key) or "").strip()
        if not identifier:
            raise BadRecord(f"it has no {self.key}")
        fields = {name: find(place) for name, place in self.columns.items()}
        for name, text in {self.key: identifier, **fields}.items():
            if text and _unfit(text):
                raise BadRecord(f"its {name} has a control character, or half of a character")
        return Parsed(identifier, {self.registry: fields})

    def identify(self, block: bytes) -> str | None:
        return None

    def join(self, first: Any, second: Any) -> Any:
        """The later row wins, whichever a table gives twice."""
        return second

    def merge(self, feed: str, identifier: str, parts: Mapping[str, Any]) -> Merged:
        fields = dict(parts[LIST])
        title = fields.get(self.feeds[0].title) or ""
        text = identifier + "".join(value or "" for _, value in sorted(fields.items()))
        return Merged(fields, hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), turkish.lower(title))

    def part_of(self, role: str, fields: Mapping[str, Any], parts: Mapping[str, Any] | None) -> Any | None:
        return fields

    # Formats

    def _rows(self, stream: BinaryIO) -> Iterator[bytes]:
        csv.field_size_limit(min(MAX_BLOCK_BYTES, sys.maxsize))
        reader = csv.reader(_lines_of(stream, self.encoding), delimiter=self.delimiter, strict=True)
        try:
            header = next(reader, None)
            missing = {self.key, *self.columns.values()} - set(header or ())
            if header is None or missing:
                raise Unfit(f"its first line lacks the column {min(missing, default='')!r}")
            for row in reader:
                if row:  # one of another length stays a list, which parses as a bad record
                    yield msgspec.json.encode(dict(zip(header, row, strict=True)) if len(row) == len(header) else row)
        except csv.Error as error:
            raise Unfit(f"it is not CSV: line {reader.line_num}: {error}") from error

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        return (line.strip().encode() for line in _lines_of(stream, self.encoding) if line.strip())

    @staticmethod
    def _find_in_object(block: bytes) -> Any:
        try:
            found = msgspec.json.decode(block)
        except msgspec.DecodeError as error:
            raise BadRecord(f"it is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise BadRecord("it is not an object, or has another number of columns than the first line")
        return lambda name: _text(found.get(name))

    @staticmethod
    def _find_in_element(block: bytes) -> Any:
        try:
            element = ET.fromstring(block)  # noqa: S314 - a block has no DTD, and so no entity that could grow
        except ET.ParseError as error:
            raise BadRecord(f"it is not well-formed: {error}") from error
        return lambda path: _at(element, path)


def _lines_of(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Lines with their ends, cut at line feeds alone: other characters that Python takes for one belong to the text."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)("strict")
    left = ""
    while True:
        chunk = stream.read(CHUNK_BYTES)
        try:
            *lines, left = (left + decoder.decode(chunk, final=not chunk)).split("\n")
        except UnicodeDecodeError as error:
            raise Unfit(f"it is not {encoding}: {error.reason}") from error
        for line in lines:
            yield line + "\n"
        if len(left) > MAX_BLOCK_BYTES:
            raise Unfit(f"a line has more than {MAX_BLOCK_BYTES} characters")
        if not chunk:
            break
    if left:
        yield left


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _at(element: ET.Element, path: str) -> str | None:
    place, _, attribute = path.partition("@")
    found = element.find(place.rstrip("/")) if place else element
    if found is None:
        return None
    return found.get(attribute) if attribute else "".join(found.itertext())
