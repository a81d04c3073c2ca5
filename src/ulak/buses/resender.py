"""Sends the messages that a topic did not take: the oldest as a trial, and the others once it is taken."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from ulak.backoff import Backoff
from ulak.buses import lease, waiting
from ulak.buses.waiting import Waiting
from ulak.errors import Unavailable
from ulak.log import get_logger
from ulak.masking import mask_text
from ulak.spine.bus import BusMessage, MessageBus, Undelivered
from ulak.spine.store import Store, Tx

A = TypeVar("A")
R = TypeVar("R")

log = get_logger("ulak.bus")

MAX_WAITING = 100_000  # beyond it the relay pauses, and messages wait in the event log
MAX_TOPICS = 20  # of one round
MAX_AT_ONCE = 256  # of one topic and round
AGAIN_SECONDS = 1.0
NAMED = 5  # how many topics a list of reasons names
LONG_SECONDS = 3600.0  # while nothing waits; the first waiting message wakes it


class Resender:
    """Works next to the relay, in the process that leads. The relay sends nothing to a topic that has messages here."""

    def __init__(self, bus: MessageBus, store: Store) -> None:
        self._bus = bus
        self._store = store
        self._backoff = Backoff(0.5, 2.0, 10.0)
        self._waiting: Counter[str] = Counter()
        self._at_once: dict[str, int] = {}
        self._failures: Counter[str] = Counter()
        self._due: dict[str, float] = {}
        self._causes: dict[str, str] = {}
        self._news = asyncio.Event()
        self._stopping = False
        self.sent = 0

    # Called by the relay

    def begin(self, counts: Mapping[str, int]) -> None:
        """Start from the stored counts: this process leads from now on."""
        self._waiting = Counter(counts)
        self._stopping = False
        for state in (self._at_once, self._failures, self._due, self._causes):
            state.clear()

    def has(self, topic: str) -> bool:
        return topic in self._waiting

    @property
    def is_full(self) -> bool:
        return self._waiting.total() >= MAX_WAITING

    def add(self, kept: Sequence[BusMessage], troubles: Mapping[str, str]) -> None:
        """Note messages that are now in the store, and the cause for each topic that is new among them."""
        self._change(Counter(one.topic for one in kept))
        for topic, cause in troubles.items():
            self._put_off(topic, cause)
        self._news.set()

    def hasten(self, topic: str) -> None:
        """Look at a topic at once, because somebody has dropped messages of it."""
        self._due.pop(topic, None)
        self._news.set()

    def stop(self) -> None:
        self._stopping = True
        self._news.set()

    async def run(self) -> None:
        """Run until `stop`, or until another process leads."""
        while not self._stopping:
            self._news.clear()
            due = self._find_due()
            if not due:
                await self._store.clock.wait(self._news, self._seconds_to_the_next())
            elif not await self._send(due):
                return

    # Sending

    async def _send(self, topics: Sequence[str]) -> bool:
        """Do one round; return False when another process leads."""
        sizes = {topic: self._at_once.get(topic, 1) for topic in topics}
        counted = {topic: self._waiting[topic] for topic in topics}
        found = await self._write(_read, sizes)
        if found is None:
            return False
        self._correct(counted, sizes, found)
        found = {topic: rows for topic, rows in found.items() if rows}
        try:
            refused = await self._bus.resend([one.message for rows in found.values() for one in rows])
        except Unavailable as error:
            for topic in topics:
                self._put_off(topic, str(error))
            return True
        taken = {topic: rows[: len(rows) - _number(refused, topic)] for topic, rows in found.items()}
        if not await self._write(_drop, [rows[-1] for rows in taken.values() if rows]):
            return False
        self._note(taken, {one.message.topic: one.cause for one in reversed(refused)})
        return True

    async def _write(self, unit: Callable[[Tx, int, A], R], given: A) -> R:
        """Retry until the store has done it: messages that were sent must be dropped."""
        while True:
            try:
                return await self._store.write(unit, self._store.owner, given)
            except Unavailable as error:
                if self._stopping:
                    raise
                log.warning("bus_resender_waits", error=str(error))
                self._news.clear()
                await self._store.clock.wait(self._news, AGAIN_SECONDS)

    def _correct(
        self, counted: Mapping[str, int], sizes: Mapping[str, int], found: Mapping[str, Sequence[Waiting]]
    ) -> None:
        """Correct the counts: there are fewer messages than counted if somebody has dropped some in another process."""
        short = {topic: counted[topic] - len(rows) for topic, rows in found.items() if len(rows) < sizes[topic]}
        self._change(Counter({topic: -number for topic, number in short.items() if number > 0}))

    def _note(self, taken: Mapping[str, Sequence[Waiting]], troubles: Mapping[str, str]) -> None:
        """A topic that took all gets twice as many next; one that did not is tried again with a single message."""
        for topic, rows in taken.items():
            self.sent += len(rows)
            if topic not in troubles:
                self._at_once[topic] = min(2 * self._at_once.get(topic, 1), MAX_AT_ONCE)
                self._recover(topic)
            elif self._at_once.pop(topic, 1) == 1:  # several at once may be too large together
                self._put_off(topic, troubles[topic])
        self._change(Counter({topic: -len(rows) for topic, rows in taken.items()}))

    def _change(self, numbers: Counter[str]) -> None:
        """Change the counts. Relay and resender do so after their commits, so a count may be below 0 for a moment."""
        for topic, number in numbers.items():
            self._waiting[topic] += number
            if not self._waiting[topic]:
                del self._waiting[topic]
                self._at_once.pop(topic, None)
                log.info("bus_messages_dropped" if topic in self._causes else "bus_topic_takes_again", topic=topic)
                self._recover(topic)

    def _recover(self, topic: str) -> None:
        for state in (self._failures, self._due, self._causes):
            state.pop(topic, None)

    def _put_off(self, topic: str, cause: str) -> None:
        if topic not in self._causes:
            log.warning("bus_topic_refuses", topic=topic, error=mask_text(cause), note="its messages are kept")
        self._causes[topic] = mask_text(cause)[:200]
        self._failures[topic] += 1
        self._due[topic] = self._store.clock.monotonic() + self._backoff.delay_seconds(self._failures[topic])

    def _find_due(self) -> list[str]:
        now = self._store.clock.monotonic()
        due = sorted((self._due.get(topic, 0.0), topic) for topic, number in self._waiting.items() if number > 0)
        return [topic for at, topic in due[:MAX_TOPICS] if at <= now]

    def _seconds_to_the_next(self) -> float:
        next_at = min((self._due[topic] for topic in self._waiting if topic in self._due), default=None)
        return LONG_SECONDS if next_at is None else max(next_at - self._store.clock.monotonic(), 0.01)

    # Looking

    def counts(self) -> list[tuple[str, int]]:
        """Return the counts by topic, largest first; a metric has a bounded number of labels."""
        return self._waiting.most_common(MAX_TOPICS)

    def cause(self, topic: str) -> str | None:
        return self._causes.get(topic)

    def reasons(self) -> Iterator[str]:
        for topic in sorted(self._causes)[:NAMED]:
            yield f"{topic} does not take its messages, and {self._waiting[topic]:,} wait: {self._causes[topic]}"
        if len(self._causes) > NAMED:
            yield f"{len(self._causes) - NAMED} more topics do not take their messages"


def _number(refused: Sequence[Undelivered], topic: str) -> int:
    return sum(one.message.topic == topic for one in refused)


def _read(tx: Tx, owner: int, sizes: Mapping[str, int]) -> dict[str, list[Waiting]] | None:
    if not lease.hold(tx, owner):
        return None
    return {topic: waiting.read(tx, topic, size) for topic, size in sizes.items()}


def _drop(tx: Tx, owner: int, last: Sequence[Waiting]) -> bool:
    if not lease.hold(tx, owner):
        return False
    for one in last:
        waiting.drop(tx, one)
    return True
