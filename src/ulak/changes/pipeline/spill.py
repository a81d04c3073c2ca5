"""Spill: what was read goes to disk by bucket of its key, so that memory holds one batch or one bucket of any list."""

from __future__ import annotations

import contextlib
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

import msgspec

from ulak.changes.state import ALL_BUCKETS

T = TypeVar("T", bound=tuple[Any, ...])

FRAME = 256
_LENGTH = struct.Struct("<I")
_ARRAY = b"\xdd"  # MessagePack: an array with a length of four bytes
_encode = msgspec.msgpack.Encoder().encode
_key = itemgetter(0)

# What a file says of a key.
PARSED, VANISHED, BAD = 0, 1, 2


class SpillEntry(NamedTuple):
    """`role` is the number of its file, `parts` what it adds to each feed."""

    key: str
    role: int
    word: int
    mark: int
    parts: Any


_decode_entries = msgspec.msgpack.Decoder(list[SpillEntry]).decode
# The parts as they are: half of the time for a reader that does not look at them.
_skim_entries = msgspec.msgpack.Decoder(list[tuple[str, int, int, int, msgspec.Raw]]).decode


@dataclass(frozen=True, slots=True)
class SpillFile:
    """A finished file, and where in it the frames of each bucket begin."""

    path: str = ""
    frames: dict[str, list[int]] = field(default_factory=dict)


class SpillWriter:
    """Collects entries and appends them to their buckets whenever a batch is full."""

    def __init__(self, path: Path, batch: int) -> None:
        self._path = path
        self._file = path.open("wb")
        self._batch = batch
        self._count = 0
        self._waiting: defaultdict[str, list[bytes]] = defaultdict(list)  # encoded: a quarter of the memory
        self._frames: defaultdict[str, list[int]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, entry: SpillEntry) -> None:
        self._waiting[entry[0][:2]].append(_encode(entry))
        self._count += 1
        if self._count >= self._batch:
            self._flush()

    def _flush(self) -> None:
        for bucket, entries in self._waiting.items():
            self._frames[bucket].append(self._file.tell())
            _write_body(self._file, _ARRAY + len(entries).to_bytes(4, "big") + b"".join(entries))
        self._waiting.clear()
        self._count = 0

    def finish(self) -> SpillFile:
        self._flush()
        return SpillFile(str(self._path), dict(self._frames))


def by_key(spills: Iterable[SpillFile], buckets: Sequence[str] = ALL_BUCKETS) -> Iterator[tuple[str, list[SpillEntry]]]:
    """Every key of some buckets in order, with what all files say of it: in the files' order, and as they say it."""
    for entries in _by_bucket(spills, buckets, _decode_entries):
        for key, same in groupby(entries, _key):
            yield key, list(same)


def marks_by_key(spill: SpillFile) -> Iterator[tuple[str, set[int]]]:
    """Every key of a file that was parsed, with the marks of its blocks."""
    for entries in _by_bucket([spill], ALL_BUCKETS, _skim_entries):
        for key, same in groupby((entry for entry in entries if entry[2] == PARSED), _key):
            yield key, {entry[3] for entry in same}


def _by_bucket(
    spills: Iterable[SpillFile], buckets: Sequence[str], decode: Callable[[bytes], list[T]]
) -> Iterator[list[T]]:
    with contextlib.ExitStack() as stack:
        files = [(stack.enter_context(Path(one.path).open("rb")), one.frames) for one in spills]
        for bucket in buckets:
            entries: list[T] = []
            for file, frames in files:
                for place in frames.get(bucket, ()):
                    file.seek(place)
                    entries += decode(_read(file))
            entries.sort(key=_key)
            yield entries


# Frames


def write_frames(file: BinaryIO, items: Iterable[Any]) -> None:
    frame: list[Any] = []
    for item in items:
        frame.append(item)
        if len(frame) == FRAME:
            _write(file, frame)
            frame = []
    if frame:
        _write(file, frame)


def _write(file: BinaryIO, frame: Sequence[Any]) -> None:
    _write_body(file, _encode(frame))


def _write_body(file: BinaryIO, body: bytes) -> None:
    file.write(_LENGTH.pack(len(body)))
    file.write(body)


def _read(file: BinaryIO) -> bytes:
    head = file.read(_LENGTH.size)
    return file.read(_LENGTH.unpack(head)[0]) if head else b""


def read_frames(paths: Iterable[str | Path], shape: Any = Any) -> Iterator[Any]:
    """Every item of some files, frame by frame; a file that is not there has none."""
    decode = msgspec.msgpack.Decoder(list[shape]).decode
    for path in map(Path, paths):
        if path.exists():
            with path.open("rb") as file:
                while body := _read(file):
                    yield from decode(body)
