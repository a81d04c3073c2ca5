"""The contract of sources, with which a plug-in can be tried before it is used."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ulak.changes.sources.source import Parsed, Source
from ulak.changes.sources.unpack import unpacked


def check_source(source: Source, files: Mapping[str, Path], ending: str = ".xml") -> int:
    """Read a list with a source and raise AssertionError for a promise that it breaks; returns how many records it has.

    `files` has a path for each role.
    """
    sent = pickle.loads(pickle.dumps(source))  # noqa: S301 - our own bytes
    assert sent == source, "a source must be picklable: it is sent to other processes"
    assert set(files) == set(source.roles), f"a list has a file for each role: {', '.join(source.roles)}"
    names = [form.name for form in source.feeds]
    assert names, "a source has at least one feed"
    assert len(set(names)) == len(names), "feeds have names of their own"
    records: dict[tuple[str, str], dict[str, Any]] = {}
    for role, path in files.items():
        for parsed in _read(source, role, path, ending):
            for feed, part in parsed.parts.items():
                assert feed in names, f"{feed} is not a feed of this source"
                if part is not None:
                    own = records.setdefault((feed, parsed.identifier), {})
                    own[role] = part if role not in own else source.join(own[role], part)
    for (feed, identifier), parts in records.items():
        _check_record(source, feed, identifier, parts)
    return len(records)


def _read(source: Source, role: str, path: Path, ending: str) -> list[Parsed]:
    found = []
    for _ in range(2):
        with unpacked(path, source.compression, ending) as opened:
            found.append([block for batch in source.blocks(role, opened) for block in batch])
    assert found[0] == found[1], "the same file must give the same blocks"
    return [source.parse(role, block) for block in found[0]]


def _check_record(source: Source, feed: str, identifier: str, parts: Mapping[str, Any]) -> None:
    merged = source.merge(feed, identifier, parts)
    form = next(one for one in source.feeds if one.name == feed)
    assert tuple(merged.fields) == form.fields, f"{feed} publishes {form.fields}, not {tuple(merged.fields)}"
    again = {role: source.part_of(role, merged.fields, merged.parts) for role in source.roles}
    present = {role: part for role, part in again.items() if part is not None}
    assert source.merge(feed, identifier, present) == merged, "merging the parts of a record again must give the record"
