"""The settler: collects the ends of attempts and brings them to the store in batches, for as long as it takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from operator import attrgetter
from typing import Any

from ulak.clock import Clock
from ulak.errors import Error, Refused, Unavailable
from ulak.log import get_logger
from ulak.spine import probe
from ulak.spine.breaker import Breakers, save_breakers
from ulak.spine.job import kind_of
from ulak.spine.outcome import WORDS, Settlement
from ulak.spine.store import LAST_SECONDS, Store
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.settle import SETTLE

log = get_logger("ulak.settler")

BATCH = 200
PAUSE_SECONDS = 1.0
_outcome, _uncertain = attrgetter("outcome"), attrgetter("uncertain")


class Settler:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        telemetry: Telemetry,
        breakers: Breakers,
        spoiled: Callable[[Settlement, Exception], Settlement],
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._breakers = breakers
        self._spoiled = spoiled
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.trouble = False  # the store does not take results: nothing new may be started

    def add(self, settlements: list[Settlement]) -> None:
        if self._closed:  # too late: the jobs stay leased, and are uncertain at the next start
            return
        for start in range(0, len(settlements), BATCH):
            self._spawn(self._settle(settlements[start : start + BATCH]))
        if self._breakers.changed:
            self._spawn(self._save_breakers())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, settlements: list[Settlement]) -> None:
        probe.reach("worker.before_settle")
        while True:
            try:
                kept = await self._store.submit(SETTLE, settlements)
                break
            except (Unavailable, Refused) as error:
                log.warning("settle_failed", jobs=len(settlements), error=str(error))
                self.trouble = True
                await self._clock.wait(asyncio.Event(), PAUSE_SECONDS)
            except Exception as error:  # noqa: BLE001 - a handler may return anything
                await self._settle_apart(settlements, error)
                return
        self.trouble = False
        probe.reach("worker.settled")
        self._count(settlements, kept)

    async def _settle_apart(self, settlements: list[Settlement], error: Exception) -> None:
        """Settle one by one: one result can't be stored, and must not take the others with it."""
        if len(settlements) == 1:
            log.warning("answer_not_kept", kind=settlements[0].kind, job=settlements[0].id, error=str(error))
            settlements = [self._spoiled(settlements[0], error)]
        for one in settlements:
            await self._settle([one])

    def _count(self, settlements: list[Settlement], kept: set[tuple[int, int]]) -> None:
        lost = [one for one in settlements if (one.id, one.epoch) not in kept] if len(kept) < len(settlements) else []
        for one in lost:
            self._telemetry.count("leases_lost", one.kind)
            log.warning("lease_lost", kind=one.kind, job=one.id, epoch=one.epoch)
        ours = settlements if not lost else [one for one in settlements if one not in lost]
        for one in filter(_uncertain, ours):
            self._telemetry.count("jobs_uncertain", one.kind)
        outcomes = map(type, map(_outcome, ours))
        for (kind, outcome), number in Counter(zip(map(kind_of, ours), outcomes, strict=True)).items():
            self._telemetry.count("jobs_settled", kind, WORDS[outcome], number)

    async def _save_breakers(self) -> None:
        changed, self._breakers.changed = self._breakers.changed, []
        try:
            await self._store.write(save_breakers, changed)
        except Error:  # with the next end of an attempt; an open one without a row would count as closed elsewhere
            self._breakers.changed[:0] = changed

    async def close(self, seconds: float) -> None:
        """Let the last results reach the store, for a bounded time. Those that wait there by then are still served."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=min(seconds, LAST_SECONDS))
        self._closed = True
        for task in self._tasks:
            task.cancel()
