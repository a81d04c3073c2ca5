"""The database's clock: this machine's, moved by the offset that was measured at connect. All instances then agree."""

from __future__ import annotations

import asyncio

from ulak.clock import Clock, SystemClock


class DatabaseClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_millis = 0

    def now(self) -> int:
        return self._clock.now() + self._offset_millis

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        return await self._clock.wait(event, seconds)

    def adjust(self, database_now: int) -> None:
        """Follow the database; a clock that a test moves by hand is left alone."""
        if isinstance(self._clock, SystemClock):
            self._offset_millis = database_now - self._clock.now()
