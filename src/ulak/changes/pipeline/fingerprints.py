"""What was read last time: a sorted array of keyed hashes of raw blocks, and the key behind each. Only a cache.

A known block is not parsed again, since these very bytes were. A cache is bound to the sync whose list it describes.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ulak.changes.pipeline.spill import read_frames, write_frames

MAGIC = b"ULAKFP2\n"
PARTITIONS = 64
_HEAD = struct.Struct("<IQ")
_SHIFT = 64 - 6


class Binding(msgspec.Struct, frozen=True):
    """To what a cache belongs; any difference makes it useless."""

    epoch: str
    sync: int
    version: str


class Fingerprints:
    """Looked up by bisection in the file itself; `seen` notes which were met."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._map[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path.name} is not a cache of fingerprints")
        size, self.count = _HEAD.unpack_from(self._map, len(MAGIC))
        start = len(MAGIC) + _HEAD.size
        self.binding = msgspec.json.decode(self._map[start : start + size], type=Binding)
        first = _aligned(start + size)
        lengths = first + 8 * self.count
        self._view = memoryview(self._map)
        self.marks = self._view[first:lengths].cast("Q")
        self.lengths = self._view[lengths : lengths + 4 * self.count].cast("I")
        self.keys = self._view[lengths + 4 * self.count :]
        if len(self.lengths) != self.count or sum(self.lengths) != len(self.keys):
            raise ValueError(f"{path.name} is cut off")
        self.seen = bytearray(self.count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for view in (self.marks, self.lengths, self.keys, self._view):
            view.release()
        self._map.close()

    def vanished(self) -> Iterator[str]:
        """Keys of the blocks that were not met."""
        begin, last, place = 0, 0, self.seen.find(0)
        while place >= 0:
            begin += sum(self.lengths[last:place])
            yield self._key(begin, place)
            last, place = place, self.seen.find(0, place + 1)

    def drop(self, keys: set[str]) -> None:
        """Forget the blocks of some keys, as if they had not been met."""
        begin = 0
        for place, length in enumerate(self.lengths if keys else ()):
            if self._key(begin, place) in keys:
                self.seen[place] = 0
            begin += length

    def _key(self, begin: int, place: int) -> str:
        return str(self.keys[begin : begin + self.lengths[place]], "utf-8")


def open_fingerprints(path: Path, binding: Binding) -> Fingerprints | None:
    """The cache of a sync, or None when it is missing, damaged or another's."""
    try:
        found = Fingerprints(path)
    except (OSError, ValueError, TypeError, struct.error, msgspec.MsgspecError):
        return None
    return found if found.binding == binding else None


def ghost(key: str) -> int:
    """A mark for a key that must be looked at again: no block has it."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8, person=b"ulak-ghost").digest(), "little")


class _Columns:
    def __init__(self) -> None:
        self.marks, self.lengths, self.keys = array("Q"), array("I"), bytearray()

    def add(self, mark: int, key: str) -> None:
        text = key.encode()
        self.marks.append(mark)
        self.lengths.append(len(text))
        self.keys += text

    def save(self, path: Path, binding: Binding) -> int:
        head = msgspec.json.encode(binding)
        start = len(MAGIC) + _HEAD.size + len(head)
        fresh = path.with_name(f"{path.name}.new")
        with fresh.open("wb") as file:
            file.write(MAGIC + _HEAD.pack(len(head), len(self.marks)) + head + bytes(_aligned(start) - start))
            self.marks.tofile(file)
            self.lengths.tofile(file)
            file.write(self.keys)
        fresh.replace(path)
        return len(self.marks)


def write_fingerprints(path: Path, binding: Binding, pairs: Iterable[tuple[int, str]]) -> int:
    """Sort (mark, key) by way of partitions on disk and write the cache; returns how many there are."""
    parts = [path.with_name(f"{path.name}.{number}") for number in range(PARTITIONS)]
    try:
        _partition(parts, pairs)
        columns = _Columns()
        for part in parts:
            for mark, key in sorted(read_frames([part], tuple[int, str])):
                columns.add(mark, key)
        return columns.save(path, binding)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _partition(parts: list[Path], pairs: Iterable[tuple[int, str]]) -> None:
    waiting: list[list[tuple[int, str]]] = [[] for _ in parts]
    for mark, key in pairs:
        own = waiting[mark >> _SHIFT]
        own.append((mark, key))
        if len(own) >= 1024:
            _append(parts[mark >> _SHIFT], own)
    for part, own in zip(parts, waiting, strict=True):
        _append(part, own)


def _append(part: Path, pairs: list[tuple[int, str]]) -> None:
    if pairs:
        with part.open("ab") as file:
            write_frames(file, pairs)
        pairs.clear()


def renew_fingerprints(path: Path, binding: Binding, known: Fingerprints, fresh: list[tuple[int, str]]) -> int:
    """Write the cache anew from the blocks that were met and a few more; what stays is copied in long stretches."""
    columns, begin, last = _Columns(), 0, 0

    def copy(to: int) -> None:
        """What was met, from the last place up to another."""
        nonlocal begin, last
        while last < to:
            stop = known.seen.find(0 if known.seen[last] else 1, last, to)
            stop = to if stop < 0 else stop
            end = begin + sum(known.lengths[last:stop])
            if known.seen[last]:
                columns.marks.frombytes(known.marks[last:stop].cast("B"))
                columns.lengths.frombytes(known.lengths[last:stop].cast("B"))
                columns.keys += known.keys[begin:end]
            begin, last = end, stop

    for mark, key in sorted(fresh):
        copy(bisect_left(known.marks, mark))
        columns.add(mark, key)
    copy(known.count)
    return columns.save(path, binding)


def _aligned(place: int) -> int:
    return -(-place // 8) * 8
