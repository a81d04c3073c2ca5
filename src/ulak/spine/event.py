"""The event log: how a commit's events are written, and how readers see them, in commit order and from a cursor."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from ulak.clock import to_datetime
from ulak.errors import Conflict
from ulak.spine.query import Queries
from ulak.spine.store import Event, Tx

sql = Queries(__package__)

BLOCKS_PER_READ = 50
_id = attrgetter("id")
# A block that was written by an early version has a job where there is a list of jobs now.
_decoder: msgspec.msgpack.Decoder[list[tuple[str, int | list[int], str, Any]]] = msgspec.msgpack.Decoder(
    list[tuple[str, int | list[int], str, Any]]
)


class EventRecord(msgspec.Struct, frozen=True):  # one is made of every event that a follower reads
    """`seq` is the cursor: read on from it and nothing is missed or seen twice."""

    seq: int
    at: datetime
    name: str
    job: int
    kind: str
    data: Any


class Reset(NamedTuple):
    """A cursor that does not fit the log: events after it were pruned, or it is ahead of a log that was restored."""

    asked: int
    oldest: int
    newest: int

    @property
    def reason(self) -> Literal["ahead", "pruned"]:
        return "ahead" if self.asked > self.newest else "pruned"

    @property
    def resume(self) -> int:
        """Return the nearest cursor that fits, to read the rest of the log or what is to come."""
        return self.newest if self.reason == "ahead" else self.oldest - 1


def events_for(word: str, rows: Iterable[Any], data: str) -> list[Event]:
    """The same word of many jobs. Neighbours that agree on their kind and on the named attribute share an entry."""
    together = groupby(rows, attrgetter("kind", data))
    return [(word, list(map(_id, alike)), kind, value) for (kind, value), alike in together]


def to_block(events: list[Event]) -> tuple[int, bytes]:
    """How many events there are, and the body of their block."""
    return sum(len(jobs) for _, jobs, _, _ in events), msgspec.msgpack.encode(events)


def _of_block(body: bytes) -> Iterable[tuple[str, int, str, Any]]:
    for name, jobs, kind, data in _decoder.decode(body):
        for job in [jobs] if isinstance(jobs, int) else jobs:
            yield name, job, kind, data


def read_events(tx: Tx, after: int, limit: int) -> list[EventRecord]:
    """Events with a sequence number above `after`, in commit order."""
    return _read(tx, after, limit)[0]


def _read(tx: Tx, after: int, limit: int) -> tuple[list[EventRecord], bool]:
    """Events above `after`, and whether a limit cut them off, so that more may be left."""
    blocks = tx.rows(sql.read_blocks, after=after + 1, n=BLOCKS_PER_READ)
    found = of_blocks(blocks, after, limit)
    return found, len(found) >= limit or len(blocks) == BLOCKS_PER_READ


def of_blocks(blocks: Iterable[Any], after: int, limit: int) -> list[EventRecord]:
    """The events above `after`, at most that many, of blocks in their order."""
    found: list[EventRecord] = []
    for first, _, millis, body in blocks:
        at = to_datetime(millis)
        for seq, (name, job, kind, data) in enumerate(_of_block(body), first):
            if seq > after:
                found.append(EventRecord(seq, at, name, job, kind, data))
        if len(found) >= limit:
            break
    return found[:limit]


def last_seq(tx: Tx) -> int:
    """Return the newest event's sequence number: the start for a reader that wants only new events."""
    row = tx.row(sql.last_block)
    return 0 if row is None else int(row[0] + row[1] - 1)


def first_seq(tx: Tx) -> int:
    """The oldest event that pruning has left; in an empty log, the one to come."""
    row = tx.row(sql.first_block)
    return 1 if row is None else int(row[0])


def read_page(tx: Tx, after: int, limit: int) -> tuple[int, list[EventRecord]]:
    """The oldest event that is left, and those above a cursor, which must be one of this log."""
    newest = last_seq(tx)
    if after > newest:
        raise Conflict(
            f"cursor {after} is beyond the newest event, {newest}: this store was restored or is another one"
        )
    return first_seq(tx), read_events(tx, after, limit)


def find_reset(tx: Tx, cursor: int) -> Reset | None:
    """None when reading on from the cursor misses nothing."""
    oldest, newest = first_seq(tx), last_seq(tx)
    return None if oldest - 1 <= cursor <= newest else Reset(cursor, oldest, newest)


def read_on(tx: Tx, cursor: int, limit: int) -> tuple[Reset | None, list[EventRecord], bool]:
    """Events above the cursor, and whether more may be left; and a reset, when pruning has overtaken a slow reader."""
    events, more = _read(tx, cursor, limit)
    skipped = bool(events) and events[0].seq > cursor + 1
    return find_reset(tx, cursor) if skipped else None, events, more
