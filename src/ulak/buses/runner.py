"""One process's part in the bus: it listens to topics, runs the relay, and reports how both are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ulak.buses import waiting
from ulak.buses.intake import AcceptBatch, Intake, KeepUnreadable
from ulak.buses.kafka import KafkaBus
from ulak.buses.local import LocalBus
from ulak.buses.relay import BusRelay
from ulak.buses.route import EventRouter, publish, to_record
from ulak.buses.waiting import Waiting
from ulak.errors import Conflict, Invalid, NotFound
from ulak.log import get_logger
from ulak.spine.bus import MessageBus, Take
from ulak.spine.room import Host
from ulak.spine.telemetry import GaugePoint
from ulak.spine.trace import with_trace

log = get_logger("ulak.bus")

GOODBYE_SECONDS = 10.0
_ID = re.compile(r"([0-9]{1,15})-([0-9]{1,9})")
GAUGES = {
    "ulak_bus_relay_leads": "1 in the process that runs the store's one relay.",
    "ulak_bus_messages_sent": "Messages that this process has put on the bus since its start.",
    "ulak_bus_requests_taken": "Requests that this process has taken from the bus since its start, by topic.",
    "ulak_bus_messages_waiting": "Messages that are kept because their topic does not take them, by topic.",
    "ulak_bus_unreadable": "Messages that could not be read and were kept, by topic, since the start.",
}


class TopicWaiting(NamedTuple):
    """A topic that does not take its messages, how many wait for it, and the cause if this process knows it."""

    topic: str
    number: int
    cause: str | None


class BusRunner:
    """`ulak.bus`: publish and listen, on either bus alike."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._takes: dict[str, Take] = {}
        self._bus: MessageBus | None = None
        self._relay: BusRelay | None = None
        self._intakes: dict[str, Intake] = {}
        self._tasks: list[asyncio.Task[None]] = []

    # Declaring

    def listen(self, topic: str, take: Take) -> None:
        """Hand batches of a topic to `take`, one after the other. A batch is not repeated once `take` has returned."""
        if self._tasks:
            raise Conflict("listen before this Ulak is opened; a group's members must agree on its topics")
        if topic in self._takes:
            raise Conflict(f"somebody listens to {topic} already; one function per topic takes its messages")
        self._takes[topic] = take

    def accept_from(self, topic: str, accept: AcceptBatch, keep_unreadable: KeepUnreadable) -> None:
        """Take a room's requests from this topic."""
        intake = Intake(accept, keep_unreadable, self._host.clock)
        self.listen(topic, intake.take)
        self._intakes[topic] = intake

    # Sending

    async def publish(self, topic: str, value: Any, key: str | None = None) -> None:
        """Send a message, durable when this returns. Text and bytes go as they are, anything else as JSON."""
        if self._relay is None and topic in self._intakes:
            await self._intakes[topic].take([to_record(topic, value, key)])
        else:
            await self._host.store.write(with_trace(publish, self._host.telemetry.tracer.current()), topic, value, key)

    # Messages that a topic does not take

    async def waiting(self) -> list[TopicWaiting]:
        """Return how many messages wait for each topic, with the cause where this process runs the relay."""
        counts = await self._host.store.read(waiting.count)
        return [TopicWaiting(topic, number, self._cause(topic)) for topic, number in sorted(counts.items())]

    async def waiting_of(self, topic: str, *, after: str | None = None, limit: int = 50) -> list[Waiting]:
        """Return the messages that wait for a topic, oldest first."""
        start = waiting.FIRST if after is None else _place(after)
        return await self._host.store.read(waiting.read, topic, limit, start)

    async def drop(self, topic: str, identifier: str | None = None, *, who: str = "python") -> int:
        """Drop a message that its topic will never take, or all that wait for it now; return how many. Audited."""
        store, first = self._host.store, waiting.FIRST
        last = await store.read(waiting.newest, topic)
        if identifier is not None:
            first = last = _place(identifier)
        dropped = 0
        while last is not None and (number := await store.write(waiting.dismiss, topic, first, last, who)):
            dropped += number
        if not dropped:
            raise NotFound(f"no such message waits for {topic!r:.100}; it was taken or dropped, see: ulak bus waiting")
        if self._relay is not None:
            self._relay.resender.hasten(topic)
        return dropped

    def _cause(self, topic: str) -> str | None:
        return None if self._relay is None else self._relay.resender.cause(topic)

    # Life

    async def start(self) -> None:
        """Start if there is anything to do: on Kafka always, on the local bus if this process listens to a topic."""
        section = self._host.settings.bus
        if section.kind == "local" and not set(self._takes) - set(self._intakes):
            return  # a room's own requests need no relay: `publish` hands them over
        self._bus = bus = KafkaBus(section.kafka) if section.kind == "kafka" else LocalBus()
        router, traced = EventRouter(section.route, section.source), self._host.telemetry.tracer.enabled
        self._relay = BusRelay(bus, self._host.store, self._host.loops.tail, router, traced=traced)
        if self._takes:
            self._spawn("ulak-bus-consumer", bus.consume(self._takes))
        self._spawn("ulak-bus-relay", self._relay.run())

    def _spawn(self, name: str, work: Any) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_tell)
        self._tasks.append(task)

    async def stop(self) -> None:
        """Stop consuming, and let the relay finish its page. Events that have not gone out stay in the log."""
        if self._relay is not None:
            self._relay.stop()
        if self._bus is not None:
            await self._bus.close()
        self._bus = self._relay = None
        tasks, self._tasks = self._tasks, []
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GOODBYE_SECONDS)
            for task in late:
                task.cancel()

    # Looking

    def gauges(self) -> Iterator[GaugePoint]:
        """Yield what this process has sent and taken, and what waits; nothing where no bus runs."""
        relay = self._relay
        if relay is None:
            return
        yield GaugePoint("ulak_bus_relay_leads", GAUGES["ulak_bus_relay_leads"], {}, float(relay.leads))
        yield GaugePoint("ulak_bus_messages_sent", GAUGES["ulak_bus_messages_sent"], {}, relay.sent)
        for topic, number in relay.resender.counts():
            yield GaugePoint("ulak_bus_messages_waiting", GAUGES["ulak_bus_messages_waiting"], {"topic": topic}, number)
        for topic, intake in self._intakes.items():
            labels = {"topic": topic}
            yield GaugePoint("ulak_bus_requests_taken", GAUGES["ulak_bus_requests_taken"], labels, intake.taken)
            yield GaugePoint("ulak_bus_unreadable", GAUGES["ulak_bus_unreadable"], labels, intake.unreadable)

    def reasons(self) -> Iterable[str]:
        """Return why /readyz complains while the bus or a topic is out of reach: work goes on, and messages wait."""
        if self._relay is None:
            return
        if self._relay.trouble is not None:
            yield f"bus: {self._relay.trouble}"
        for reason in self._relay.resender.reasons():
            yield f"bus: {reason}"


def _place(identifier: str) -> waiting.Place:
    found = _ID.fullmatch(identifier)
    if found is None:
        raise Invalid(f"{identifier!r:.100} is not the id of a message that waits; it reads like 1200-3")
    return int(found[1]), int(found[2])


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("bus_ended", task=task.get_name(), error=f"{type(error).__name__}: {error}")
