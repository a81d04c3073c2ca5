"""Spill: sorted runs of entries on disk, and one sorted stream over them. Memory holds one batch, whatever the list."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

FRAME = 256
_LENGTH = struct.Struct("<I")

# What a file says of a key.
PARSED, VANISHED, BAD = 0, 1, 2


class RunEntry(NamedTuple):
    """`number` is unique within a role, so that two entries never compare by what follows."""

    key: str
    role: int
    number: int
    word: int
    mark: int
    parts: bytes


def write_frames(file: BinaryIO, items: Iterable[Any]) -> None:
    frame: list[Any] = []
    for item in items:
        frame.append(item)
        if len(frame) == FRAME:
            _write(file, frame)
            frame = []
    if frame:
        _write(file, frame)


def _write(file: BinaryIO, frame: list[Any]) -> None:
    body = msgspec.msgpack.encode(frame)
    file.write(_LENGTH.pack(len(body)))
    file.write(body)


def read_frames(path: Path) -> Iterator[Any]:
    """Every item of a file, frame by frame; a file that is not there has none."""
    for frame in read_whole_frames(path):
        yield from frame


def read_whole_frames(path: Path) -> Iterator[list[Any]]:
    if not path.exists():
        return
    decode = msgspec.msgpack.Decoder(list[Any]).decode
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield decode(file.read(_LENGTH.unpack(head)[0]))


class RunWriter:
    """Collects entries and writes a sorted run whenever a batch is full."""

    def __init__(self, folder: Path, name: str, batch: int) -> None:
        self._folder = folder
        self._name = name
        self._batch = batch
        self._entries: list[RunEntry] = []
        self.paths: list[str] = []

    def add(self, entry: RunEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) >= self._batch:
            self.flush()

    def flush(self) -> None:
        if not self._entries:
            return
        path = self._folder / f"{self._name}-{len(self.paths)}.run"
        self._entries.sort()
        with path.open("wb") as file:
            write_frames(file, self._entries)
        self.paths.append(str(path))
        self._entries = []


def merged(paths: Iterable[str]) -> Iterator[list[Any]]:
    """Entries of all runs, in the order of their keys."""
    return heapq.merge(*(read_frames(Path(path)) for path in paths))


def by_key(paths: Iterable[str]) -> Iterator[tuple[str, list[RunEntry]]]:
    for key, entries in groupby(merged(paths), itemgetter(0)):
        yield key, [RunEntry(*entry) for entry in entries]
