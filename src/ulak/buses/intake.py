"""The way in: a batch of requests becomes durable at once; unreadable messages are kept and never stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ulak.backoff import Backoff
from ulak.clock import Clock
from ulak.errors import Refused, Unavailable
from ulak.log import get_logger
from ulak.spine.bus import BusRecord
from ulak.spine.trace import HEADERS

log = get_logger("ulak.bus")

AcceptBatch = Callable[..., Awaitable[Sequence[Any]]]
"""`accept_batch(bodies, origin=…)` returns a verdict for each: what was accepted, or the error.

If any message belongs to a trace, it also gets the `headers` of each."""
KeepUnreadable = Callable[[bytes, str, int, int], Awaitable[object]]


class Intake:
    """Takes batches. At the room's bound it waits, and the bus pauses; the room recognises repeated requests."""

    def __init__(self, accept: AcceptBatch, keep_unreadable: KeepUnreadable, clock: Clock) -> None:
        self._accept = accept
        self._keep = keep_unreadable
        self._clock = clock
        self._backoff = Backoff(0.05, 2.0, 2.0)
        self.taken = 0
        self.unreadable = 0

    async def take(self, batch: Sequence[BusRecord]) -> None:
        left = [one for one in batch if _is_object(one.value)]
        broken = [one for one in batch if not _is_object(one.value)]
        attempt = 0
        while left or broken:
            try:
                while broken:
                    await self._keep(broken[0].value, broken[0].topic, broken[0].partition, broken[0].offset)
                    self.unreadable += 1
                    broken.pop(0)
                left = await self._accepted(left)
            except Unavailable as error:
                log.warning("bus_batch_waits", error=str(error))
            if left or broken:
                attempt += 1
                await self._clock.wait(asyncio.Event(), self._backoff.delay_seconds(attempt))

    async def _accepted(self, left: Sequence[BusRecord]) -> list[BusRecord]:
        """Accept records; return those that met a bound or got no answer."""
        if not left:
            return []
        verdicts = await self._accept([one.value for one in left], origin=left[0].topic, **_traces(left))
        again = [one for one, said in zip(left, verdicts, strict=True) if isinstance(said, Refused | Unavailable)]
        self.taken += len(left) - len(again)
        return again


def _traces(records: Sequence[BusRecord]) -> dict[str, Any]:
    """Return the traces that the records belong to, if any of them names one."""
    headers = [{name: value.decode("latin-1") for name, value in one.headers if name in HEADERS} for one in records]
    return {"headers": headers} if any(headers) else {}


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(value), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
