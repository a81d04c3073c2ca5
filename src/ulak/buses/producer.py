"""The producing half of Kafka: idempotent, acknowledged by all replicas, and flushed before it says yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ulak.errors import Misconfigured, Unavailable
from ulak.spine.bus import BusMessage, Undelivered

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

# Together they are shorter than the relay's lease: a process that has lost the lease must not be sending a page.
FLUSH_SECONDS = 6.0
LOOK_SECONDS = 2.0
_UNKNOWN_MILLIS = 3000  # how long a topic may be unknown: it may just have been created
_ROOM_SECONDS = 0.1


class KafkaProducer:
    """Sends one page at a time. After a page that was not taken as a whole, it makes a new client."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **config,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "delivery.timeout.ms": round(FLUSH_SECONDS * 1000),
            "topic.metadata.propagation.max.ms": _UNKNOWN_MILLIS,
        }
        # Made now, so that settings that the library refuses fail the start.
        self._client: Producer | None = _client(self._config)
        self._busy = asyncio.Lock()

    async def send(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        async with self._busy:
            return await asyncio.to_thread(self._send, messages)

    async def close(self) -> None:
        """Drop the client; every `send` has flushed its own messages."""
        self._client = None

    def _send(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        client = self._client = self._client or _client(self._config)
        page = _Page(client, messages)
        page.hand_over()
        if not page.failed:
            return []
        try:
            return page.refused()
        finally:
            self._drop(client)  # `close` may have come meanwhile

    def _drop(self, client: Producer) -> None:
        """Discard messages that were not taken: this process or another sends them again, so none may go out later."""
        client.purge()
        client.poll(0)
        self._client = None


class _Page:
    """Tracks each message of a page. A topic that has refused one gets no more of the page."""

    def __init__(self, client: Producer, messages: Sequence[BusMessage]) -> None:
        self._client = client
        self._messages = messages
        self._open = set(range(len(messages)))
        self.failed: dict[str, tuple[int, KafkaError | None]] = {}  # a topic's first, and its error; None: no answer

    def hand_over(self) -> None:
        for index, one in enumerate(self._messages):
            if one.topic not in self.failed:
                self._produce(index, one)
        self._client.flush(FLUSH_SECONDS)
        for index in self._open:
            self._fail(index, None)

    def _produce(self, index: int, one: BusMessage) -> None:
        from confluent_kafka import KafkaException

        def delivered(error: KafkaError | None, _: Any) -> None:
            self._open.discard(index)
            if error is not None:
                self._fail(index, error)

        while True:
            try:
                self._client.produce(
                    one.topic, value=one.value, key=one.key, headers=list(one.headers), on_delivery=delivered
                )
                self._client.poll(0)
                return
            except BufferError:  # its queue is full until some messages are delivered
                self._client.poll(_ROOM_SECONDS)
            except KafkaException as error:  # known at once: it is too large, or the client is broken
                delivered(error.args[0], None)
                return

    def _fail(self, index: int, error: KafkaError | None) -> None:
        topic = self._messages[index].topic
        if topic not in self.failed or index < self.failed[topic][0]:
            self.failed[topic] = index, error

    def refused(self) -> list[Undelivered]:
        """Return the messages that their topics did not take; raise Unavailable if the whole cluster failed."""
        causes = {topic: self._cause(topic, error) for topic, (_, error) in self.failed.items()}
        return [
            Undelivered(one, causes[one.topic])
            for index, one in enumerate(self._messages)
            if one.topic in causes and index >= self.failed[one.topic][0]
        ]

    def _cause(self, topic: str, error: KafkaError | None) -> str:
        if error is not None and error.code() in _of_the_topic():
            return str(error.str())
        if _is_silence(error) and self._answers():
            return "it was not acknowledged in time"
        raise Unavailable(f"Kafka did not take a message for {topic}: {'no answer' if error is None else error.str()}")

    def _answers(self) -> bool:
        """Return whether the cluster answers: if so, the topic has no leader or too few replicas."""
        from confluent_kafka import KafkaException

        try:
            self._client.list_topics(timeout=LOOK_SECONDS)
        except KafkaException:
            return False
        return True


def _of_the_topic() -> set[int]:
    from confluent_kafka import KafkaError

    return {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the library's own spelling
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
    }


def _is_silence(error: KafkaError | None) -> bool:
    from confluent_kafka import KafkaError

    return error is None or error.code() == KafkaError._MSG_TIMED_OUT  # noqa: SLF001


def _client(config: Mapping[str, Any]) -> Producer:
    from confluent_kafka import KafkaException, Producer

    try:
        return Producer(dict(config))
    except KafkaException as error:
        raise Misconfigured(f"the Kafka client does not take [bus.kafka]: {error.args[0].str()}") from None
