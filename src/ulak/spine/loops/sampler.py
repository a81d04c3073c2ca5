"""The sampler: keeps the last sample of the store, and takes a new one after a pause."""

from __future__ import annotations

import asyncio

from ulak.errors import Error
from ulak.log import get_logger
from ulak.spine.store import Store
from ulak.spine.units.sample import Sample, take_sample

log = get_logger("ulak.sampler")

# A read of 300,000 unfinished jobs took 90 ms: the pause keeps sampling below a twentieth of the time.
MIN_PAUSE_SECONDS = 1.0
PAUSE_FACTOR = 20


class Sampler:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken = self._not_before = float("-inf")
        self._lock = asyncio.Lock()
        self.last = Sample()

    @property
    def age_seconds(self) -> float:
        """How long ago the last sample was taken."""
        return self._store.clock.monotonic() - self._taken

    async def refresh(self) -> None:
        """Take a sample, unless the last is young. If the store does not answer, the old one stays and ages."""
        async with self._lock:
            if self._store.clock.monotonic() < self._not_before:
                return
            try:
                await self._take()
            except Error as error:
                log.warning("sample_failed", error=str(error))

    async def take(self) -> Sample:
        """Take a sample of this very moment; raises when the store does not answer.

        An old sample would say that all is well when nobody knows.
        """
        async with self._lock:
            return await self._take()

    async def _take(self) -> Sample:
        began = self._store.clock.monotonic()
        try:
            self.last = await self._store.read(take_sample)
            self._taken = self._store.clock.monotonic()
        finally:
            now = self._store.clock.monotonic()
            self._not_before = now + max(MIN_PAUSE_SECONDS, PAUSE_FACTOR * (now - began))
        return self.last
