"""The last reading: a sorted array of keyed hashes of raw blocks, and the key behind each. Only a cache.

A known block is not parsed again, since these very bytes were. A cache is bound to the sync whose list it describes.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import shutil
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ulak.changes.pipeline.spill import read_frames, write_frames

MAGIC = b"ULAKFP2\n"
PARTITIONS = 64
_HEAD = struct.Struct("<IQ")
_MARK = struct.Struct("=Q").pack
_KEY_LENGTH = struct.Struct("=I").pack
_SHIFT = 64 - 6


class Binding(msgspec.Struct, frozen=True):
    """To what a cache belongs; any difference makes it useless."""

    epoch: str
    sync: int
    version: str


class Fingerprints:
    """Looked up by bisection in the file itself; `seen` notes which were met."""

    def __init__(self, path: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(path.open("rb"))
            self._map = stack.enter_context(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
            if self._map[: len(MAGIC)] != MAGIC:
                raise ValueError(f"{path.name} is not a cache of fingerprints")
            size, self.count = _HEAD.unpack_from(self._map, len(MAGIC))
            start = len(MAGIC) + _HEAD.size
            self.binding = msgspec.json.decode(self._map[start : start + size], type=Binding)
            first = _aligned(start + size)
            lengths = first + 8 * self.count
            self._keys_at = lengths + 4 * self.count  # read, not mapped: who looks blocks up needs no key of theirs
            whole = stack.enter_context(memoryview(self._map))
            self.marks = stack.enter_context(whole[first:lengths].cast("Q"))
            self.lengths = stack.enter_context(whole[lengths : self._keys_at].cast("I"))
            if len(self.lengths) != self.count or self._keys_at + sum(self.lengths) != len(self._map):
                raise ValueError(f"{path.name} is cut off")
            self.seen = bytearray(self.count)
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._opened.close()

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
        return b"".join(self.keys(begin, begin + self.lengths[place])).decode()

    def keys(self, begin: int, end: int) -> Iterator[bytes]:
        """Part of the column of keys, in pieces."""
        self._file.seek(self._keys_at + begin)
        while begin < end:
            piece = self._file.read(min(end - begin, 1 << 18))
            begin += len(piece)
            yield piece


def open_fingerprints(path: Path, binding: Binding) -> Fingerprints | None:
    """The cache of a sync, or None when it is missing, damaged or another's."""
    try:
        found = Fingerprints(path)
    except (OSError, ValueError, TypeError, struct.error, msgspec.MsgspecError):
        return None
    if found.binding == binding:
        return found
    found.close()
    return None


def ghost(key: str) -> int:
    """A mark for a key that must be looked at again: no block has it."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8, person=b"ulak-ghost").digest(), "little")


class _CacheWriter:
    """Writes a cache column by column: marks into the file itself, lengths and keys beside it until all are there."""

    def __init__(self, path: Path, binding: Binding) -> None:
        self._path = path
        self._head = msgspec.json.encode(binding)
        self._parts = [path.with_name(f"{path.name}.{column}") for column in ("new", "lengths", "keys")]
        self._marks, self._lengths, self._keys = (part.open("wb") for part in self._parts)
        self._marks.write(bytes(_aligned(len(MAGIC) + _HEAD.size + len(self._head))))
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._marks, self._lengths, self._keys):
            file.close()
        for part in self._parts:
            part.unlink(missing_ok=True)

    def add(self, mark: int, key: str) -> None:
        text = key.encode()
        self._marks.write(_MARK(mark))
        self._lengths.write(_KEY_LENGTH(len(text)))
        self._keys.write(text)
        self.count += 1

    def copy(self, known: Fingerprints, start: int, stop: int, begin: int, end: int) -> None:
        """Copy the known blocks from one place up to another, whose keys lie between two more."""
        self._marks.write(known.marks[start:stop].cast("B"))
        self._lengths.write(known.lengths[start:stop].cast("B"))
        self._keys.writelines(known.keys(begin, end))
        self.count += stop - start

    def save(self) -> None:
        for file, part in zip((self._lengths, self._keys), self._parts[1:], strict=True):
            file.close()
            with part.open("rb") as column:
                shutil.copyfileobj(column, self._marks, 1 << 20)
        self._marks.seek(0)
        self._marks.write(MAGIC + _HEAD.pack(len(self._head), self.count) + self._head)
        self._marks.close()
        self._parts[0].replace(self._path)


def write_fingerprints(path: Path, binding: Binding, pairs: Iterable[tuple[int, str]]) -> int:
    """Sort (mark, key) by way of partitions on disk and write the cache; returns how many there are."""
    parts = [path.with_name(f"{path.name}.{number}") for number in range(PARTITIONS)]
    try:
        _partition(parts, pairs)
        with _CacheWriter(path, binding) as writer:
            for part in parts:
                for mark, key in sorted(read_frames([part], tuple[int, str])):
                    writer.add(mark, key)
            writer.save()
        return writer.count
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


def renew_fingerprints(path: Path, binding: Binding, known: Fingerprints, fresh: Sequence[tuple[int, str]]) -> int:
    """Write the cache anew from the blocks that were met and a few more; what stays is copied in long stretches."""
    with _CacheWriter(path, binding) as writer:
        begin = last = 0
        for mark, key in [*sorted(fresh), (None, "")]:
            to = known.count if mark is None else bisect_left(known.marks, mark)
            while last < to:
                met = known.seen[last]
                stop = known.seen.find(0 if met else 1, last, to)
                stop = to if stop < 0 else stop
                end = begin + sum(known.lengths[last:stop])
                if met:
                    writer.copy(known, last, stop, begin, end)
                begin, last = end, stop
            if mark is not None:
                writer.add(mark, key)
        writer.save()
    return writer.count


def _aligned(place: int) -> int:
    return -(-place // 8) * 8
