"""Results on disk: appended to segments, dropped by whole segments, never rewritten."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from io import FileIO

_SEGMENTS = 8


@dataclass(slots=True)
class _Segment:
    file: FileIO
    path: str
    size: int = 0
    names: set[str] = field(default_factory=set)


class Spill:
    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._segment_bytes = max(1, limit_bytes // _SEGMENTS)
        self._directory = tempfile.mkdtemp(prefix="ulak-results-", dir=directory)
        self._places: dict[str, tuple[_Segment, int, int]] = {}
        self._segments: OrderedDict[int, _Segment] = OrderedDict()
        self._next = 0

    def __len__(self) -> int:
        return len(self._places)

    def put(self, name: str, blob: bytes) -> list[str]:
        """Keep it; returns the names that had to go for it."""
        segment = self._current()
        written = segment.file.write(blob)
        if written != len(blob):
            os.ftruncate(segment.file.fileno(), segment.size)
            raise OSError(f"only {written} of {len(blob)} bytes fit on the disk")
        self._places[name] = segment, segment.size, len(blob)
        segment.names.add(name)
        segment.size += len(blob)
        return self._drop_oldest() if len(self._segments) > _SEGMENTS else []

    def get(self, name: str) -> bytes | None:
        if name not in self._places:
            return None
        segment, offset, length = self._places[name]
        return os.pread(segment.file.fileno(), length, offset)

    def forget(self, name: str) -> None:
        """The bytes go with their segment, or at once when the segment holds nothing else."""
        segment = self._places.pop(name)[0]
        segment.names.discard(name)
        for number, other in list(self._segments.items())[:-1]:
            if other is segment and not segment.names:
                self._remove(number)

    def close(self) -> None:
        for segment in self._segments.values():
            segment.file.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _current(self) -> _Segment:
        if not self._segments or next(reversed(self._segments.values())).size >= self._segment_bytes:
            path = os.path.join(self._directory, f"{self._next:08d}")
            self._segments[self._next] = _Segment(open(path, "wb+", buffering=0), path)  # noqa: SIM115 - closed in _remove
            self._next += 1
        return next(reversed(self._segments.values()))

    def _drop_oldest(self) -> list[str]:
        number = next(iter(self._segments))
        names = list(self._segments[number].names)
        for name in names:
            del self._places[name]
        self._remove(number)
        return names

    def _remove(self, number: int) -> None:
        segment = self._segments.pop(number)
        segment.file.close()
        os.unlink(segment.path)
