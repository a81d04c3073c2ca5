"""The producing half of Kafka: idempotent, acknowledged by all replicas, and flushed before it says yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ulak.errors import Misconfigured, Unavailable
from ulak.spine.bus import BusMessage, Undeliverable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

FLUSH_SECONDS = 8.0  # less than the relay's lease: who has lost that must not have a page under way
_ROOM_SECONDS = 0.1


class KafkaProducer:
    """One batch at a time, as a whole. After one that failed the client is made anew."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **config,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "delivery.timeout.ms": round(FLUSH_SECONDS * 1000),
        }
        self._client: Producer | None = _client(self._config)  # now: what the library refuses is told at the start
        self._busy = asyncio.Lock()

    async def send(self, messages: Sequence[BusMessage]) -> list[Undeliverable]:
        async with self._busy:
            return await asyncio.to_thread(self._send, messages)

    async def close(self) -> None:
        """Everything was flushed by whoever sent it."""
        self._client = None

    def _send(self, messages: Sequence[BusMessage]) -> list[Undeliverable]:
        client = self._open()
        errors: dict[int, KafkaError | None] = {}
        for index, one in enumerate(messages):
            self._hand_over(client, one, index, errors)
        client.flush(FLUSH_SECONDS)
        try:
            if len(errors) < len(messages):
                raise Unavailable(f"Kafka has not acknowledged {len(messages) - len(errors)} messages in time")
            return self._judge(messages, {index: error for index, error in errors.items() if error is not None})
        except Unavailable:
            self._drop(client)
            raise

    def _hand_over(self, client: Producer, one: BusMessage, index: int, errors: dict[int, KafkaError | None]) -> None:
        from confluent_kafka import KafkaException

        def told(error: KafkaError | None, _: Any) -> None:
            errors[index] = error

        while True:
            try:
                client.produce(one.topic, value=one.value, key=one.key, headers=list(one.headers), on_delivery=told)
                client.poll(0)
                return
            except BufferError:  # its queue is full; what is on its way makes room
                client.poll(_ROOM_SECONDS)
            except KafkaException as error:  # told at once: it is too large, or the client is broken
                errors[index] = error.args[0]
                return

    def _judge(self, messages: Sequence[BusMessage], failed: Mapping[int, Any]) -> list[Undeliverable]:
        from confluent_kafka import KafkaError

        never = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.TOPIC_EXCEPTION}
        refused = []
        for index, error in failed.items():
            if error.code() not in never:
                raise Unavailable(f"Kafka did not take a message for {messages[index].topic}: {error.str()}")
            refused.append(Undeliverable(messages[index], error.str()))
        return refused

    def _drop(self, client: Producer) -> None:
        """The whole page is sent again, by us or by another process: nothing of it may leave later, out of order."""
        client.purge()
        client.poll(0)
        self._client = None

    def _open(self) -> Producer:
        if self._client is None:
            self._client = _client(self._config)
        return self._client


def _client(config: Mapping[str, Any]) -> Producer:
    from confluent_kafka import KafkaException, Producer

    try:
        return Producer(dict(config))
    except KafkaException as error:
        raise Misconfigured(f"the Kafka client does not take [bus.kafka]: {error.args[0].str()}") from None
