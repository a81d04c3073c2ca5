"""Messages that their topic did not take: kept in the store, in order, until it takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from ulak.spine.bus import BusMessage
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units import audit

sql = Queries(__package__)

MAX_DISMISSED = 5000  # of one transaction
Place: TypeAlias = tuple[int, int]
FIRST: Place = (-1, -1)  # before all
_decoder = msgspec.msgpack.Decoder(BusMessage)


class Waiting(NamedTuple):
    """A message, the page of the event log that it came from, and its place there."""

    page: int
    place: int
    message: BusMessage

    @property
    def id(self) -> str:
        return f"{self.page}-{self.place}"


def keep(tx: Tx, page: int, messages: Sequence[BusMessage]) -> None:
    rows = [(one.topic, page, place, msgspec.msgpack.encode(one)) for place, one in enumerate(messages)]
    if rows:
        tx.insert_rows(sql.insert_waiting, rows)


def count(tx: Tx) -> dict[str, int]:
    """Return how many messages wait, by topic."""
    return {topic: int(number) for topic, number in tx.rows(sql.count_waiting)}


def read(tx: Tx, topic: str, number: int, after: Place = FIRST) -> list[Waiting]:
    """Return a topic's oldest messages, at most `number`, or those after a place."""
    rows = tx.rows(sql.read_waiting, topic=topic, page=after[0], place=after[1], n=number)
    return [Waiting(page, place, _decoder.decode(message)) for page, place, message in rows]


def drop(tx: Tx, last: Waiting) -> None:
    """Delete this message and all before it: the topic has taken them."""
    tx.execute(sql.delete_waiting, topic=last.message.topic, page=last.page, place=last.place)


def newest(tx: Tx, topic: str) -> Place | None:
    row = tx.row(sql.last_waiting, topic=topic)
    return None if row is None else (row[0], row[1])


def dismiss(tx: Tx, topic: str, first: Place, last: Place, who: str) -> int:
    """Drop messages that the topic will never take; return how many, at most `MAX_DISMISSED`. Audited."""
    limits = {"page": first[0], "place": first[1], "last_page": last[0], "last_place": last[1]}
    number = tx.execute(sql.dismiss_waiting, topic=topic, n=MAX_DISMISSED, **limits)
    if number:
        audit.record(tx, who, "bus.messages.dropped", topic, {"number": number, "first": first, "last": last})
    return number
