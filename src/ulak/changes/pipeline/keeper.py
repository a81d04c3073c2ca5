"""Writes the cache of a file after a sync: what was read and published need not be parsed the next time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ulak.changes.pipeline.fingerprints import Binding, Fingerprints, ghost, renew_fingerprints, write_fingerprints
from ulak.changes.pipeline.spill import SpillFile, marks_by_key, read_frames


@dataclass(frozen=True, slots=True)
class Keeping:
    """The cache of one role that is to be written after a sync."""

    spill: SpillFile
    old: str | None
    seen: str | None
    held: tuple[str, ...]  # files of keys that must be looked at again
    path: str
    binding: Binding


def keep_fingerprints(keeping: Keeping) -> int:
    held = set(read_frames(keeping.held))
    path = Path(keeping.path)
    if keeping.old is None or keeping.seen is None:
        return write_fingerprints(path, keeping.binding, _fresh(keeping, held))
    with Fingerprints(Path(keeping.old)) as known:
        known.seen = bytearray(Path(keeping.seen).read_bytes())
        known.drop(held)
        return renew_fingerprints(path, keeping.binding, known, list(_fresh(keeping, held)))


def _fresh(keeping: Keeping, held: set[str]) -> Iterable[tuple[int, str]]:
    for key, marks in marks_by_key(keeping.spill):
        if key not in held:  # of a key with several blocks, one alone tells nothing
            yield marks.pop() if len(marks) == 1 else ghost(key), key
    yield from ((ghost(key), key) for key in sorted(held))
