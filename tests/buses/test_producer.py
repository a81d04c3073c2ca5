"""The producer beside a stop: a page under way ends with an answer, whatever `close` does meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import KafkaException

from ulak.buses import producer as producers
from ulak.buses.producer import KafkaProducer
from ulak.errors import Unavailable
from ulak.spine.bus import BusMessage


class SilentClient:
    """A client of a cluster that does not answer; the producer is closed while it waits."""

    def __init__(self) -> None:
        self.purged = False

    def produce(self, *args, **kwargs) -> None: ...

    def poll(self, seconds) -> None: ...

    def flush(self, seconds) -> None:
        asyncio.run(self.producer.close())

    def list_topics(self, timeout):
        raise KafkaException

    def purge(self) -> None:
        self.purged = True


async def test_a_page_under_way_when_the_producer_is_closed_is_unavailable_and_leaves_nothing_behind(monkeypatch):
    client = SilentClient()
    monkeypatch.setattr(producers, "_client", lambda config: client)
    client.producer = KafkaProducer({})
    with pytest.raises(Unavailable, match="no answer"):
        await client.producer.send([BusMessage("t", None, b"{}")])
    assert client.purged
