"""The bus inside this process. The store is what keeps messages: they are events before they are handed over."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

from ulak.errors import Unavailable
from ulak.spine.bus import BusMessage, BusRecord, Take, Undeliverable


class LocalBus:
    name = "local"

    def __init__(self) -> None:
        self._takers: dict[str, Take] = {}
        self._offsets: defaultdict[str, count[int]] = defaultdict(count)
        self._closed = asyncio.Event()

    async def produce(self, messages: Sequence[BusMessage]) -> list[Undeliverable]:
        """Hand over at once. What nobody listens to stays in the event log, where it can be read."""
        batches: defaultdict[str, list[BusRecord]] = defaultdict(list)
        for one in messages:
            if one.topic in self._takers:
                record = BusRecord(one.topic, 0, next(self._offsets[one.topic]), one.key, one.value)
                batches[one.topic].append(record)
        for topic, batch in batches.items():
            await self._hand_over(self._takers[topic], batch)
        return []

    async def _hand_over(self, take: Take, batch: Sequence[BusRecord]) -> None:
        """A take that waits for a free place does not hold up the end of this process."""
        taking = asyncio.ensure_future(take(batch))
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([taking, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if not taking.done():
            taking.cancel()
            raise Unavailable("this process stops; the messages are handed over by the next one")
        if (error := taking.exception()) is not None:
            raise Unavailable(f"{batch[0].topic} was not taken ({type(error).__name__}: {error})") from error

    async def consume(self, takes: Mapping[str, Take]) -> None:
        self._takers.update(takes)
        await self._closed.wait()

    async def close(self) -> None:
        self._closed.set()
        self._takers.clear()
