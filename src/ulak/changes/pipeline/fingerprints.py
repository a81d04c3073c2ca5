"""What was read last time: a sorted array of keyed hashes of raw blocks, and the key behind each. Only a cache.

A known block is not parsed again, since these very bytes were. A cache is bound to the sync whose list it describes.
"""

from __future__ import annotations

import hashlib
import mmap
import shutil
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from ulak.changes.pipeline.runs import read_frames, write_frames

MAGIC = b"ULAKFP1\n"
PARTITIONS = 64
_HEAD = struct.Struct("<IQ")
_SHIFT = 64 - 6


class Binding(msgspec.Struct, frozen=True):
    """To what a cache belongs; any difference makes it useless."""

    epoch: str
    sync: int
    version: str


def marker(salt: bytes) -> Callable[[bytes], int]:
    """The hash of a block, keyed, so that nobody outside can make two blocks alike."""

    def mark(block: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(block, digest_size=8, key=salt).digest(), "little")

    return mark


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
        self._view = memoryview(self._map)
        self._marks = self._view[first : first + 8 * self.count].cast("Q")
        offsets = first + 8 * self.count
        self._offsets = self._view[offsets : offsets + 8 * (self.count + 1)].cast("Q")
        self._keys = offsets + 8 * (self.count + 1)
        self.seen = bytearray(self.count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._marks.release()
        self._offsets.release()
        self._view.release()
        self._map.close()

    def meet(self, mark: int) -> bool:
        """True when the block was read last time."""
        place = bisect_left(self._marks, mark)
        if place == self.count or self._marks[place] != mark:
            return False
        self.seen[place] = 1
        return True

    def key(self, place: int) -> str:
        begin, end = self._offsets[place], self._offsets[place + 1]
        return self._map[self._keys + begin : self._keys + end].decode()

    def vanished(self) -> Iterator[str]:
        """Keys of the blocks that were not met."""
        place = self.seen.find(0)
        while place >= 0:
            yield self.key(place)
            place = self.seen.find(0, place + 1)

    def kept(self) -> Iterator[tuple[int, str]]:
        place = self.seen.find(1)
        while place >= 0:
            yield self._marks[place], self.key(place)
            place = self.seen.find(1, place + 1)


def open_fingerprints(path: Path, binding: Binding) -> Fingerprints | None:
    """The cache of a sync, or None when it is missing, damaged or another's."""
    try:
        found = Fingerprints(path)
    except (OSError, ValueError, struct.error, msgspec.MsgspecError):
        return None
    return found if found.binding == binding else None


def ghost(key: str) -> int:
    """A mark for a key that must be looked at again: no block has it."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8, person=b"ulak-ghost").digest(), "little")


def write_fingerprints(path: Path, binding: Binding, pairs: Iterable[tuple[int, str]]) -> int:
    """Sort (mark, key) by way of partitions on disk and write the cache; returns how many there are."""
    parts = [path.with_name(f"{path.name}.{number}") for number in range(PARTITIONS)]
    try:
        _partition(parts, pairs)
        ordered = (pair for part in parts for pair in sorted(map(tuple, read_frames(part))))
        return write_sorted(path, binding, ordered)
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


def write_sorted(path: Path, binding: Binding, pairs: Iterable[tuple[Any, ...]]) -> int:
    """Write the cache of pairs that come in the order of their marks; returns how many there are."""
    head = msgspec.json.encode(binding)
    start = len(MAGIC) + _HEAD.size + len(head)
    fresh, blob = path.with_name(f"{path.name}.new"), path.with_name(f"{path.name}.keys")
    marks, ends, place = array("Q"), array("Q", [0]), 0
    with blob.open("wb") as keys:
        for mark, key in pairs:
            text = key.encode()
            place += len(text)
            marks.append(mark)
            ends.append(place)
            keys.write(text)
    with fresh.open("wb") as file, blob.open("rb") as keys:
        file.write(MAGIC + _HEAD.pack(len(head), len(marks)) + head + bytes(_aligned(start) - start))
        marks.tofile(file)
        ends.tofile(file)
        shutil.copyfileobj(keys, file, 1 << 20)
    blob.unlink()
    fresh.replace(path)
    return len(marks)


def _aligned(place: int) -> int:
    return -(-place // 8) * 8
