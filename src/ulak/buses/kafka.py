"""The Kafka bus: librdkafka by confluent-kafka (extra `ulak[kafka]`), imported only where it is used."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ulak.buses.consumer import KafkaConsumer
from ulak.buses.producer import KafkaProducer
from ulak.errors import Misconfigured
from ulak.log import get_logger
from ulak.secrets import reveal
from ulak.settings.bus import Kafka
from ulak.spine.bus import BusMessage, Take, Undelivered

log = get_logger("ulak.bus")

AGAIN_SECONDS = 2.0


class KafkaBus:
    name = "kafka"

    def __init__(self, section: Kafka) -> None:
        _check_library()
        self._config = client_config(section)
        self._group = section.group
        self._producer = KafkaProducer(self._config)
        self._resender = KafkaProducer(self._config)
        self._consumers: set[KafkaConsumer] = set()
        self._closed = asyncio.Event()

    async def produce(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        return await self._producer.send(messages)

    async def resend(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        """Produce with a client of its own, because a missing topic takes seconds to be reported."""
        return await self._resender.send(messages)

    async def consume(self, takes: Mapping[str, Take]) -> None:
        """Consume until `close`; after an error, start another consumer."""
        while not self._closed.is_set():
            consumer = KafkaConsumer({**self._config, "group.id": self._group}, takes)
            self._consumers.add(consumer)
            try:
                await consumer.run()
            except Exception as error:  # noqa: BLE001 - whatever it was, a topic without a reader would be worse
                log.warning("bus_consumer_ended", error=f"{type(error).__name__}: {error}", note="another one follows")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), AGAIN_SECONDS)
            finally:
                await consumer.stop()
                self._consumers.discard(consumer)

    async def close(self) -> None:
        self._closed.set()
        await asyncio.gather(*(consumer.stop() for consumer in list(self._consumers)))
        await self._producer.close()
        await self._resender.close()


def client_config(section: Kafka) -> dict[str, Any]:
    """Return the settings in librdkafka's words."""
    config: dict[str, Any] = {"bootstrap.servers": ",".join(section.servers), "client.id": "ulak"}
    encrypted = section.tls or bool(section.ca_file)
    if section.sasl:
        config |= {
            "sasl.mechanism": section.sasl,
            "sasl.username": section.username,
            "sasl.password": reveal(section.password, "bus.kafka.password"),
        }
    if section.ca_file:
        config["ssl.ca.location"] = section.ca_file
    transport = ("SASL_" if section.sasl else "") + ("SSL" if encrypted else "PLAINTEXT")
    return {**config, "security.protocol": transport, "log_level": 2}


def _check_library() -> None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise Misconfigured("bus.kind = \"kafka\" needs the Kafka client: pip install 'ulak[kafka]'.") from None
