"""Joins what was read with what is published, key by key, and writes the delta of each feed. Runs on the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ulak.changes.fields import record_hash
from ulak.changes.pipeline.spill import BAD, PARSED, VANISHED, SpillEntry, SpillFile, by_key, read_frames, write_frames
from ulak.changes.sources.source import Source
from ulak.changes.state import ALL_BUCKETS, Sums, to_identifier

ADDED, MODIFIED, REMOVED = 1, 2, 3
_WAITING = 1024
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


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
    """The sums of a feed's delta; `paths` have the changes in the order of their keys."""

    paths: tuple[str, ...] = ()
    added: int = 0
    modified: int = 0
    removed: int = 0
    kept: bytes = b""  # sums of additions and modifications
    gone: bytes = b""  # sums of removals
    aliases: Counter[str] = field(default_factory=Counter)  # change of their number by role, removals apart
    gone_aliases: Counter[str] = field(default_factory=Counter)
    lost_aliases: Counter[str] = field(default_factory=Counter)  # of users who stay
    crossed: int = 0  # users whose aliases changed their role
    mixed: int = 0

    def deltas(self) -> Iterator[Delta]:
        return read_frames(self.paths, Delta)

    def join(self, other: FeedDelta) -> None:
        """Go on with the delta of later keys."""
        self.paths += other.paths
        self.added += other.added
        self.modified += other.modified
        self.removed += other.removed
        self.kept, self.gone = _joined(self.kept, other.kept), _joined(self.gone, other.gone)
        for own, more in (
            (self.aliases, other.aliases),
            (self.gone_aliases, other.gone_aliases),
            (self.lost_aliases, other.lost_aliases),
        ):
            own.update(more)
        self.crossed += other.crossed
        self.mixed += other.mixed


@dataclass(slots=True)
class DiffResult:
    feeds: dict[str, FeedDelta]
    held: tuple[str, ...] = ()  # files of keys whose records were carried over
    carried: int = 0
    doubled: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """`whole`: every key of the list is in the spills, so one that is not there has left."""

    source: Source
    spills: tuple[SpillFile, ...]
    folder: str
    current: Mapping[str, str]  # feed: file of Current of these buckets, sorted by key
    whole: bool
    by_content: bool = False
    unnamed: int = 0
    buckets: Sequence[str] = ALL_BUCKETS


def compare(comparison: Comparison) -> DiffResult:
    return _Compare(comparison).run()


def join_results(results: Sequence[DiffResult]) -> DiffResult:
    """One result of those of all buckets, in their order."""
    first, *others = results
    for one in others:
        for feed, delta in one.feeds.items():
            first.feeds[feed].join(delta)
        first.held += one.held
        first.carried += one.carried
        first.doubled += one.doubled
        first.duplicates += one.duplicates
    return first


def _joined(first: bytes, second: bytes) -> bytes:
    sums = Sums(first)
    sums.join(second)
    return sums.packed()


class _Peek:
    """The published records of a feed, walked along with the keys."""

    def __init__(self, path: str) -> None:
        self._rows: Iterator[Current] = read_frames([path], Current)
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
        path = Path(comparison.folder) / f"{feed}-{comparison.buckets[0]}.delta"
        self._file = path.open("wb")
        self._waiting: list[Delta] = []
        self._kept, self._gone = Sums(), Sums()
        self.result = FeedDelta((str(path),))

    def add(self, delta: Delta, aliases: Mapping[str, int]) -> None:
        self._kept.add(delta.key, delta.hash)
        self.result.added += 1
        for role, number in aliases.items():
            self.result.aliases[role] += number
        self._write(delta)

    def modify(self, delta: Delta, before: Current, aliases: Mapping[str, int]) -> None:
        self._kept.take(delta.key, before.hash)
        self._kept.add(delta.key, delta.hash)
        self.result.modified += 1
        old = _decode(before.body)
        had = roles_of(old)
        self.result.aliases.update(aliases)
        self.result.aliases.subtract(had)
        for role, number in had.items():
            self.result.lost_aliases[role] += max(number - aliases.get(role, 0), 0)
        self.result.crossed += _is_crossed(old, _decode(delta.body or "{}"))
        self._write(delta)

    def remove(self, before: Current, why: str) -> None:
        self._gone.take(before.key, before.hash)
        self.result.removed += 1
        self.result.gone_aliases.subtract(roles_of(_decode(before.body)))
        reason = _encode({"reason": why}).decode()
        self._write(Delta(before.key, REMOVED, before.hash, None, reason, None, None))

    def _write(self, delta: Delta) -> None:
        self._waiting.append(delta)
        if len(self._waiting) >= _WAITING:
            self._flush()

    def _flush(self) -> None:
        write_frames(self._file, self._waiting)
        self._waiting = []

    def close(self) -> FeedDelta:
        self._flush()
        self._file.close()
        self.result.kept, self.result.gone = self._kept.packed(), self._gone.packed()
        return self.result


def roles_of(fields: Mapping[str, Any]) -> Counter[str]:
    return Counter(alias["type"] for alias in fields.get("aliases") or [])


Parts = dict[str, dict[str, Any]]  # by feed and role


class _Compare:
    def __init__(self, comparison: Comparison) -> None:
        self._task = comparison
        self._source = comparison.source
        self._roles = comparison.source.roles
        self._feeds = [form.name for form in comparison.source.feeds]
        self._published = {feed: _Peek(comparison.current[feed]) for feed in self._feeds}
        self._writers = {feed: _FeedWriter(comparison, feed) for feed in self._feeds}
        self._held = (Path(comparison.folder) / f"carried-{comparison.buckets[0]}").open("wb")
        self._result = DiffResult({}, (self._held.name,))

    def run(self) -> DiffResult:
        published = self._published
        for key, entries in by_key(self._task.spills, self._task.buckets):
            for feed, peek in published.items():
                if peek.next is not None and peek.next.key < key:
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

    def _judge(self, key: str, entries: list[SpillEntry]) -> None:
        records = {feed: peek.take(key) for feed, peek in self._published.items()}
        parts: Parts = {feed: {} for feed in self._feeds}
        named: set[str] = set()
        blocks: dict[int, list[SpillEntry]] = {}
        vanished: set[int] = set()
        for entry in entries:
            if entry.word == PARSED:
                blocks.setdefault(entry.role, []).append(entry)
            elif entry.word == VANISHED:
                vanished.add(entry.role)
            else:
                assert entry.word == BAD
                self._carry(key)
                return
        for number, own in blocks.items():
            self._join(self._roles[number], own, parts, named)
        present = bool(blocks)
        if not self._task.whole:
            present |= self._keep(records, parts, blocks, vanished)
        for feed in self._feeds:
            if parts[feed]:
                self._judge_feed(feed, key, parts[feed], records[feed])
            elif (record := records[feed]) is not None:
                self._remove(feed, record, _why_gone(feed, named, present=present))

    def _carry(self, key: str) -> None:
        self._result.carried += 1
        write_frames(self._held, [key])

    def _join(self, role: str, blocks: list[SpillEntry], parts: Parts, named: set[str]) -> None:
        if len(blocks) > 1:
            self._result.duplicates += len(blocks) - 1
            blocks = list({entry.mark: entry for entry in blocks}.values())
        for entry in blocks:
            for feed, part in entry.parts.items():
                named.add(feed)
                if part is None:
                    continue
                known = parts[feed].get(role)
                parts[feed][role] = part if known is None else self._source.join(known, part)

    def _keep(
        self, records: Mapping[str, Current | None], parts: Parts, blocks: Mapping[int, Any], vanished: set[int]
    ) -> bool:
        """A file that says nothing of a key still has the part that it had; whether one of them has."""
        kept = False
        for number, role in enumerate(self._roles):
            if number in vanished:
                continue
            had = {feed: self._part(role, record) for feed, record in records.items() if record is not None}
            had = {feed: part for feed, part in had.items() if part is not None}
            if number in blocks:
                self._result.doubled += bool(had)  # beside the block that was read there is one that is known
                continue
            kept |= bool(had)
            for feed, part in had.items():
                parts[feed][role] = part
        return kept

    def _part(self, role: str, record: Current) -> Any | None:
        return self._source.part_of(role, _decode(record.body), _decode(record.parts) if record.parts else None)

    def _judge_feed(self, feed: str, key: str, parts: dict[str, Any], record: Current | None) -> None:
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
        writer = self._writers[feed]
        writer.result.mixed += merged.mixed
        change = ADDED if record is None else MODIFIED
        delta = Delta(key, change, own, merged.content_hash, packed, body, merged.title)
        if record is None:
            writer.add(delta, merged.aliases)
        else:
            writer.modify(delta, record, merged.aliases)

    def _is_same(self, record: Current, own: bytes, content_hash: str) -> bool:
        return record.content_hash == content_hash if self._task.by_content else record.hash == own

    def _remove(self, feed: str, record: Current, why: str) -> None:
        if self._task.unnamed and why == "left-list":  # it may be the one whose block nobody can read
            self._carry(record.key)
        else:
            self._writers[feed].remove(record, why)


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
