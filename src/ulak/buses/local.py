"""The bus inside this process. Messages are kept in the store: they are events before they are handed over."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

from ulak.errors import Unavailable
from ulak.spine.bus import BusMessage, BusRecord, Take, Undelivered


class LocalBus:
    name = "local"

    def __init__(self) -> None:
        self._takers: dict[str, Take] = {}
        self._offsets: defaultdict[str, count[int]] = defaultdict(count)
        self._closed = asyncio.Event()

    async def produce(self, messages: Sequence[BusMessage]) -> list[Undelivered]:
        """Hand over at once. Events without a listener stay in the event log, where they can be read."""
        batches: defaultdict[str, list[BusMessage]] = defaultdict(list)
        for one in messages:
            if one.topic in self._takers:
                batches[one.topic].append(one)
        refused = []
        for topic, batch in batches.items():
            cause = await self._hand_over(self._takers[topic], [self._record(one) for one in batch])
            if cause is not None:
                refused += [Undelivered(one, cause) for one in batch]
        return refused

    resend = produce

    def _record(self, one: BusMessage) -> BusRecord:
        return BusRecord(one.topic, 0, next(self._offsets[one.topic]), one.key, one.value, one.headers)

    async def _hand_over(self, take: Take, batch: Sequence[BusRecord]) -> str | None:
        """Return why a batch was not taken, or None. A take that waits for capacity does not delay `close`."""
        taking = asyncio.ensure_future(take(batch))
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([taking, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if not taking.done():
            taking.cancel()
            raise Unavailable("this process stops; the messages are handed over by the next one")
        error = taking.exception()
        return None if error is None else f"{type(error).__name__}: {error}"

    async def consume(self, takes: Mapping[str, Take]) -> None:
        self._takers.update(takes)
        await self._closed.wait()

    async def close(self) -> None:
        self._closed.set()
        self._takers.clear()
