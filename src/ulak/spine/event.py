"""The event log as its readers see it: in commit order, from a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

BLOCKS_PER_READ = 50
_decoder: msgspec.msgpack.Decoder[list[tuple[str, int, str, Any]]] = msgspec.msgpack.Decoder(
    list[tuple[str, int, str, Any]]
)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """`seq` is the cursor: read on from it and nothing is missed or seen twice."""

    seq: int
    at: int
    name: str
    job: int
    kind: str
    data: Any


def read_events(tx: Tx, after: int, limit: int) -> list[EventRecord]:
    """Events with a sequence number above `after`, in commit order."""
    found: list[EventRecord] = []
    for first, _, at, body in tx.all(sql.read_blocks, after=after + 1, n=BLOCKS_PER_READ):
        for seq, (name, job, kind, data) in enumerate(_decoder.decode(body), first):
            if seq > after:
                found.append(EventRecord(seq, at, name, job, kind, data))
        if len(found) >= limit:
            break
    return found[:limit]


def last_seq(tx: Tx) -> int:
    """The newest event's sequence number: where a reader starts who wants only what is to come."""
    row = tx.one(sql.last_block)
    return 0 if row is None else int(row[0] + row[1] - 1)
