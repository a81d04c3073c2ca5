"""Joins what was read with what is published, key by key, and writes the delta of each feed. Runs on the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ulak.changes.fields import record_hash
from ulak.changes.pipeline.runs import BAD, PARSED, VANISHED, RunEntry, by_key, read_frames, write_frames
from ulak.changes.sources.source import Source
from ulak.changes.state import Sums, to_identifier

ADDED, MODIFIED, REMOVED = 1, 2, 3
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_unpack = msgspec.msgpack.Decoder().decode


class Current(NamedTuple):
    """A record as it is published."""

    key: str
    hash: bytes
    content_hash: str
    parts: str | None
    body: str


class Delta(NamedTuple):
    """One change, in the order of the table's columns; `parts` of a removal says why."""

    key: str
    change: int
    hash: bytes
    content_hash: str | None
    parts: str | None
    body: str | None
    title: str | None


@dataclass(slots=True)
class FeedDelta:
    """What a feed's delta comes to; `path` has the changes in the order of their keys."""

    path: str
    added: int = 0
    modified: int = 0
    removed: int = 0
    kept: bytes = b""  # sums of additions and modifications
    gone: bytes = b""  # sums of removals
    aliases: dict[str, int] = field(default_factory=dict)  # change of their number by role, removals apart
    gone_aliases: dict[str, int] = field(default_factory=dict)
    lost_aliases: dict[str, int] = field(default_factory=dict)  # of users who stay
    crossed: int = 0  # users whose aliases changed their role
    mixed: int = 0


@dataclass(slots=True)
class DiffResult:
    feeds: dict[str, FeedDelta]
    held: str = ""  # file of keys whose records were carried over
    carried: int = 0
    doubled: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """`whole`: every key of the list is in the runs, so one that is not there has left."""

    source: Source
    runs: tuple[str, ...]
    folder: str
    current: Mapping[str, str]  # feed: file of Current, sorted by key
    whole: bool
    by_content: bool = False
    unnamed: int = 0


def list_keys(runs: tuple[str, ...], path: str) -> int:
    """Write the keys that the runs speak of; returns how many."""
    count = 0

    def keys() -> Iterator[str]:
        nonlocal count
        for key, _ in by_key(runs):
            count += 1
            yield key

    with Path(path).open("wb") as file:
        write_frames(file, keys())
    return count


def compare(comparison: Comparison) -> DiffResult:
    return _Compare(comparison).run()


class _Peek:
    """The published records of a feed, walked along with the keys."""

    def __init__(self, path: str) -> None:
        self._rows = (Current(*row) for row in read_frames(Path(path)))
        self.next = next(self._rows, None)

    def pop(self) -> Current:
        found = self.next
        assert found is not None
        self.next = next(self._rows, None)
        return found

    def take(self, key: str) -> Current | None:
        return self.pop() if self.next is not None and self.next.key == key else None


class _FeedWriter:
    def __init__(self, comparison: Comparison, feed: str) -> None:
        self._path = Path(comparison.folder) / f"{feed}.delta"
        self._file = self._path.open("wb")
        self._waiting: list[Delta] = []
        self._kept, self._gone = Sums(), Sums()
        self._aliases: Counter[str] = Counter()
        self._gone_aliases: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self.result = FeedDelta(str(self._path))

    def write(self, delta: Delta, before: Current | None) -> None:
        sums = self._gone if delta.change == REMOVED else self._kept
        if before is not None:
            sums.take(delta.key, before.hash)
        if delta.change != REMOVED:
            sums.add(delta.key, delta.hash)
        self._count(delta.change)
        self._waiting.append(delta)
        if len(self._waiting) >= 1024:
            self._flush()

    def note_aliases(self, change: int, before: Current | None, now: Mapping[str, int] | None) -> None:
        old = roles_of(before)
        if change == REMOVED:
            self._gone_aliases.subtract(old)
            return
        self._aliases.update(now or {})
        self._aliases.subtract(old)
        for role, number in old.items():
            self._lost[role] += max(number - (now or {}).get(role, 0), 0)

    def _count(self, change: int) -> None:
        name = {ADDED: "added", MODIFIED: "modified", REMOVED: "removed"}[change]
        setattr(self.result, name, getattr(self.result, name) + 1)

    def _flush(self) -> None:
        write_frames(self._file, self._waiting)
        self._waiting = []

    def close(self) -> FeedDelta:
        self._flush()
        self._file.close()
        result = self.result
        result.kept, result.gone = self._kept.packed(), self._gone.packed()
        result.aliases, result.gone_aliases = dict(self._aliases), dict(self._gone_aliases)
        result.lost_aliases = dict(self._lost)
        return result


def roles_of(record: Current | None) -> Counter[str]:
    if record is None:
        return Counter()
    return Counter(alias["type"] for alias in _decode(record.body).get("aliases") or [])


class _Compare:
    def __init__(self, comparison: Comparison) -> None:
        self._task = comparison
        self._source = comparison.source
        self._feeds = [form.name for form in comparison.source.feeds]
        self._published = {feed: _Peek(comparison.current[feed]) for feed in self._feeds}
        self._writers = {feed: _FeedWriter(comparison, feed) for feed in self._feeds}
        self._held = (Path(comparison.folder) / "carried").open("wb")
        self._result = DiffResult({}, self._held.name)

    def run(self) -> DiffResult:
        for key, entries in by_key(self._task.runs):
            for feed in self._feeds:
                self._leave(feed, key)
            self._judge(key, entries)
        for feed in self._feeds:
            self._leave(feed, None)
        self._held.close()
        self._result.feeds = {feed: writer.close() for feed, writer in self._writers.items()}
        return self._result

    def _leave(self, feed: str, key: str | None) -> None:
        """Published records before a key: in a whole list, those that it does not have."""
        published = self._published[feed]
        while published.next is not None and (key is None or published.next.key < key):
            record = published.pop()
            if self._task.whole:
                self._remove(feed, record, "left-list")

    def _judge(self, key: str, entries: list[RunEntry]) -> None:
        records = {feed: self._published[feed].take(key) for feed in self._feeds}
        if any(entry.word == BAD for entry in entries):
            self._carry(key)
            return
        parts, named, present = self._parts(entries, records)
        for feed in self._feeds:
            self._judge_feed(feed, key, parts[feed], records[feed], _why_gone(feed, named, present=present))

    def _carry(self, key: str) -> None:
        self._result.carried += 1
        write_frames(self._held, [key])

    def _parts(
        self, entries: list[RunEntry], records: Mapping[str, Current | None]
    ) -> tuple[dict[str, dict[str, Any]], set[str], bool]:
        """The parts of each feed by role; the feeds that some block names; whether a block is there at all."""
        parts: dict[str, dict[str, Any]] = {feed: {} for feed in self._feeds}
        named: set[str] = set()
        present = False
        for number, role in enumerate(self._source.roles):
            blocks = [entry for entry in entries if entry.role == number and entry.word == PARSED]
            vanished = any(entry.role == number and entry.word == VANISHED for entry in entries)
            if blocks:
                present = True
                if not self._task.whole and not vanished and self._had(role, records):
                    self._result.doubled += 1
                named |= self._join(role, blocks, parts)
            elif not self._task.whole and not vanished:
                present |= self._keep(role, records, parts)
        return parts, named, present

    def _join(self, role: str, blocks: list[RunEntry], parts: dict[str, dict[str, Any]]) -> set[str]:
        if len(blocks) > 1:
            distinct = {entry.mark: entry for entry in blocks}
            self._result.duplicates += len(blocks) - 1
            blocks = list(distinct.values())
        named: set[str] = set()
        for entry in blocks:
            for feed, part in _unpack(entry.parts).items():
                named.add(feed)
                if part is None:
                    continue
                known = parts[feed].get(role)
                parts[feed][role] = part if known is None else self._source.join(known, part)
        return named

    def _had(self, role: str, records: Mapping[str, Current | None]) -> bool:
        return any(record is not None and self._part(role, record) is not None for record in records.values())

    def _keep(self, role: str, records: Mapping[str, Current | None], parts: dict[str, dict[str, Any]]) -> bool:
        """A file that says nothing of a key still has the part that it had."""
        kept = False
        for feed, record in records.items():
            part = None if record is None else self._part(role, record)
            if part is not None:
                parts[feed][role] = part
                kept = True
        return kept

    def _part(self, role: str, record: Current) -> Any | None:
        return self._source.part_of(role, _decode(record.body), _decode(record.parts) if record.parts else None)

    def _judge_feed(self, feed: str, key: str, parts: dict[str, Any], record: Current | None, why: str) -> None:
        if not parts:
            if record is not None:
                self._remove(feed, record, why)
            return
        identifier = to_identifier(key)
        merged = self._source.merge(feed, identifier, parts)
        own = record_hash(identifier, merged.fields)
        packed = None if merged.parts is None else _encode(merged.parts).decode()
        body = _encode(merged.fields).decode()
        if record is not None and self._is_same(record, own, merged.content_hash):
            if (packed, body) != (record.parts, record.body):
                # The parts behind the same record have changed: what is stored does not tell them, so both files are
                # read again for this key.
                write_frames(self._held, [key])
            return
        writer, change = self._writers[feed], ADDED if record is None else MODIFIED
        writer.write(Delta(key, change, own, merged.content_hash, packed, body, merged.title), record)
        writer.note_aliases(change, record, merged.aliases)
        writer.result.mixed += merged.mixed
        if record is not None and _is_crossed(_decode(record.body), merged.fields):
            writer.result.crossed += 1

    def _is_same(self, record: Current, own: bytes, content_hash: str) -> bool:
        return record.content_hash == content_hash if self._task.by_content else record.hash == own

    def _remove(self, feed: str, record: Current, why: str) -> None:
        if self._task.unnamed and why == "left-list":  # it may be the one whose block nobody can read
            self._carry(record.key)
            return
        writer = self._writers[feed]
        reason = _encode({"reason": why}).decode()
        writer.write(Delta(record.key, REMOVED, record.hash, None, reason, None, None), record)
        writer.note_aliases(REMOVED, record, None)


def _why_gone(feed: str, named: set[str], *, present: bool) -> str:
    if feed in named:
        return "no-active-alias"
    return "document-type-dropped" if present else "left-list"


def _is_crossed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an alias of one role came to be one of the other."""
    if "aliases" not in after:
        return False
    old = {(alias["alias"], alias["type"]) for alias in before["aliases"]}
    new = {(alias["alias"], alias["type"]) for alias in after["aliases"]}
    names = {name for name, _ in new - old}
    return any(name in names for name, _ in old - new)
