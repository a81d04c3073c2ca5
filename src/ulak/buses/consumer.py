"""The consuming half of Kafka, on a thread of its own: a batch, its durable take, then its offsets."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from ulak.backoff import Backoff
from ulak.log import get_logger
from ulak.spine.bus import BusRecord, Take

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

log = get_logger("ulak.bus")

BATCH = 500
POLL_SECONDS = 0.2
PATIENCE_SECONDS = 0.5  # a take that lasts longer pauses the partitions of its topic
COMMIT_TRIES = 3
LOOK_MILLIS = 3000  # how often to look for new topics; the library's default is five minutes
SESSION_MILLIS = 10_000  # a member that is silent for longer loses its partitions to the others


class KafkaConsumer:
    """Reads topics as one member of a group. Messages whose offsets were not committed come again, to it or to another.

    While a topic's batch is being taken, that topic is paused; no other topic waits for it.
    """

    def __init__(self, config: Mapping[str, Any], takes: Mapping[str, Take]) -> None:
        self._config = {
            **config,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MILLIS,
            "topic.metadata.refresh.interval.ms": LOOK_MILLIS,
        }
        self._takes = dict(takes)
        self._backoff = Backoff(0.2, 2.0, 10.0)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._stopping = threading.Event()
        self._taking: dict[str, tuple[Future[None], Sequence[Message]]] = {}
        self.paused: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="ulak-kafka-consumer", daemon=True)

    async def run(self) -> None:
        """Run until `stop`; if anything else ends the thread, raise its error."""
        self._thread.start()
        await asyncio.shield(self._ended)

    async def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            await asyncio.wait([self._ended], timeout=10.0)

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._consume()
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread is passed to the caller of `run`
            failure = error
        self._loop.call_soon_threadsafe(self._end, failure)

    def _end(self, failure: BaseException | None) -> None:
        if self._ended.done():
            return
        if failure is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(failure)

    def _consume(self) -> None:
        from confluent_kafka import Consumer

        client = Consumer(self._config)
        try:
            client.subscribe(list(self._takes), on_assign=self._assigned)
            while not self._stopping.is_set():
                self._begin([one for one in client.consume(BATCH, POLL_SECONDS) if _is_sound(one)])
                self._settle(client)
        finally:
            for future, _ in self._taking.values():
                future.cancel()
            client.close()

    def _assigned(self, client: Consumer, partitions: list[Any]) -> None:
        """Pause new partitions of a topic whose batch is being taken, like its other partitions."""
        client.assign(partitions)
        client.pause([one for one in partitions if one.topic in self._taking])

    def _begin(self, messages: Sequence[Message]) -> None:
        """Hand over each topic's batch. A topic has one at a time: it is paused while the last one is being taken."""
        batches: defaultdict[str, list[Message]] = defaultdict(list)
        for one in messages:
            batches[one.topic() or ""].append(one)
        for topic, batch in batches.items():
            taken = self._hand_over(topic, [_record(one) for one in batch])
            self._taking[topic] = (asyncio.run_coroutine_threadsafe(taken, self._loop), batch)

    async def _hand_over(self, topic: str, batch: Sequence[BusRecord]) -> None:
        """Repeat until the batch is taken: a function that fails gets the same batch again."""
        attempt = 0
        while True:
            try:
                await self._takes[topic](batch)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                attempt += 1
                log.warning("bus_batch_failed", topic=topic, error=f"{type(error).__name__}: {error}")
                await asyncio.sleep(self._backoff.delay_seconds(attempt))
            else:
                return

    def _settle(self, client: Consumer) -> None:
        """Commit the batches that are taken and resume their topics; pause the topics whose batch takes longer."""
        fresh = [future for topic, (future, _) in self._taking.items() if topic not in self.paused]
        wait(fresh, PATIENCE_SECONDS)
        for topic, (future, batch) in list(self._taking.items()):
            if future.done():
                del self._taking[topic]
                self._commit(client, batch)
                if topic in self.paused:
                    self.paused.discard(topic)
                    client.resume(self._partitions(client, topic))
            elif topic not in self.paused:
                self.paused.add(topic)
                client.pause(self._partitions(client, topic))

    @staticmethod
    def _partitions(client: Consumer, topic: str) -> list[Any]:
        return [one for one in client.assignment() if one.topic == topic]

    def _commit(self, client: Consumer, messages: Sequence[Message]) -> None:
        """Commit the next offsets. Kafka refuses during a rebalance: the messages come again and are recognised."""
        from confluent_kafka import KafkaException, TopicPartition

        highest: dict[tuple[str, int], int] = {}
        for one in messages:
            place = (one.topic() or "", one.partition() or 0)
            highest[place] = max(highest.get(place, 0), (one.offset() or 0) + 1)
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in highest.items()]
        for tries in range(COMMIT_TRIES):
            try:
                client.commit(offsets=offsets, asynchronous=False)
                return
            except KafkaException as error:
                if _is_rebalance(error) or tries == COMMIT_TRIES - 1:
                    log.info("offsets_not_committed", error=str(error.args[0]), note="they are read again")
                    return


def _is_sound(message: Message) -> bool:
    """Return whether this is a message. Errors that pass by themselves are logged; a fatal one is raised."""
    from confluent_kafka import KafkaError, KafkaException

    error = message.error()
    if error is None:
        return True
    if error.fatal():
        raise KafkaException(error)
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's own spelling
        log.warning("bus_not_read", error=error.str())
    return False


def _record(message: Message) -> BusRecord:
    key, value = message.key(), message.value()
    headers: Any = message.headers() or ()  # pairs, whatever the stubs say
    return BusRecord(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        _raw(key),
        _raw(value) or b"",
        tuple((name, _raw(given) or b"") for name, given in headers),
    )


def _raw(part: Any) -> bytes | None:
    return part.encode() if isinstance(part, str) else part


def _is_rebalance(error: Any) -> bool:
    from confluent_kafka import KafkaError

    return error.args[0].code() in {
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001
        KafkaError._NO_OFFSET,  # noqa: SLF001
        KafkaError._STATE,  # noqa: SLF001
    }
