"""Messages of a bus that are not requests: kept as they came, for a person to look at, as long as runs are kept."""

from __future__ import annotations

from typing import NamedTuple

from ulak.errors import Invalid, NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

SLICE = 500
_FIRST = ("", -1, -1)


class UnreadableMessage(NamedTuple):
    topic: str
    partition: int
    offset: int
    size: int
    at: int

    @property
    def id(self) -> str:
        """Its place on the bus; a list goes on after it."""
        return f"{self.topic}:{self.partition}:{self.offset}"


def list_unreadable(tx: Tx, after: str | None, limit: int) -> list[UnreadableMessage]:
    topic, partition, offset = _FIRST if after is None else _place(after)
    rows = tx.rows(sql.list_unreadable, topic=topic, part=partition, position=offset, n=limit)
    return [UnreadableMessage(*row) for row in rows]


def read_unreadable(tx: Tx, identifier: str) -> bytes:
    topic, partition, offset = _place(identifier)
    row = tx.row(sql.read_unreadable, topic=topic, part=partition, position=offset)
    if row is None:
        raise NotFound(f"no unreadable message {identifier:.300}; list them to see which there are")
    return bytes(row[0])


def prune_unreadable(tx: Tx, keep_millis: int) -> int:
    return tx.execute(sql.prune_unreadable, before=tx.now - keep_millis, n=SLICE)


def _place(identifier: str) -> tuple[str, int, int]:
    topic, *numbers = identifier.rsplit(":", 2)
    if len(numbers) != 2 or not all(one.isascii() and one.isdigit() and len(one) < 19 for one in numbers):
        raise Invalid(f"{identifier!r:.300} is not an unreadable message's id; ids are topic:partition:offset")
    return topic, int(numbers[0]), int(numbers[1])
