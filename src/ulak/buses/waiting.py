"""Messages whose topic did not take them: kept in the store, in their order, until it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ulak.spine.bus import BusMessage
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

_decoder = msgspec.msgpack.Decoder(BusMessage)


class Waiting(NamedTuple):
    """A message, the page of the event log that it came from, and its place there."""

    page: int
    place: int
    message: BusMessage


def keep(tx: Tx, page: int, messages: Sequence[BusMessage]) -> None:
    rows = [(one.topic, page, place, msgspec.msgpack.encode(one)) for place, one in enumerate(messages)]
    if rows:
        tx.insert_rows(sql.insert_waiting, rows)


def count(tx: Tx) -> dict[str, int]:
    """How many wait, by topic."""
    return {topic: int(number) for topic, number in tx.rows(sql.count_waiting)}


def read(tx: Tx, topic: str, number: int) -> list[Waiting]:
    """The oldest so many of a topic."""
    rows = tx.rows(sql.read_waiting, topic=topic, n=number)
    return [Waiting(page, place, _decoder.decode(message)) for page, place, message in rows]


def drop(tx: Tx, last: Waiting) -> None:
    """The topic has taken this one and all before it."""
    tx.execute(sql.delete_waiting, topic=last.message.topic, page=last.page, place=last.place)
