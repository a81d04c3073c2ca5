"""The taker: claims what there is room for, whenever there may be work, and leaves a claim with the store when not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from ulak.clock import Clock
from ulak.errors import Error
from ulak.spine import probe
from ulak.spine.claim import CLAIM_SUSPECTS, Claimed, Claimer, Demand, SuspectDemand
from ulak.spine.handler import Handlers
from ulak.spine.heat import Heat
from ulak.spine.job import Lease
from ulak.spine.settler import Settler
from ulak.spine.store import Store, Verb
from ulak.spine.suspects import Suspects
from ulak.spine.underway import Underway

log = structlog.get_logger("ulak.worker")

D = TypeVar("D")
R = TypeVar("R")

POLL_SECONDS = 1.0


class Taker:
    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        underway: Underway,
        settler: Settler,
        begin: Callable[[list[Lease]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._underway = underway
        self._settler = settler
        self._begin = begin
        self._heat = Heat(handlers)
        self._suspects = Suspects(store, handlers, clock, self._heat, underway, self._claim_suspects)
        self._claimer = Claimer()
        self._riding: asyncio.Future[Claimed | None] | None = None
        self._not_claiming = asyncio.Event()
        self._not_claiming.set()
        self._look_everywhere_at = 0.0
        self._wake = asyncio.Event()
        self.stopping = False

    # What there may be to do

    def heat(self, ready: set[tuple[str, int]]) -> None:
        """A commit made these (kind, priority) pairs ready."""
        self._heat.add(ready)
        self._wake.set()

    def heat_all(self) -> None:
        """Look everywhere: at the start, and once in a while, because a wake-up may have been lost."""
        self._heat.add_all()
        self._wake.set()

    def make_room(self, suspects: bool) -> None:
        """Attempts have ended, of suspects among others or not."""
        if suspects:
            self._heat.suspects = True
        self._wake.set()

    def rests(self, kind: str) -> bool:
        """Whether work of this kind has to wait for its rate."""
        return self._heat.rests(kind, self._clock.monotonic())

    def room(self) -> Demand | None:
        """For whatever kind of work may come now; None without room."""
        return None if self._busy() else self._underway.demand(self._store.owner, self._heat.rested())

    # Claiming

    async def run(self) -> None:
        while not self.stopping:
            self._wake.clear()
            self._look_around()
            try:
                if not await self._claim_once():
                    await self._rest()
            except Error as error:
                log.warning("claim_failed", error=str(error))
                await self._clock.wait(self._wake, POLL_SECONDS)

    def _look_around(self) -> None:
        """Busy or not, everything is looked at once in a while."""
        now = self._clock.monotonic()
        if now >= self._look_everywhere_at:
            self._look_everywhere_at = now + POLL_SECONDS
            self._heat.add_all()

    async def _rest(self) -> None:
        """There is nothing to do. What becomes ready now is claimed by the commit that makes it so."""
        ride = self._ride()
        await self._clock.wait(self._wake, self._rest_seconds())
        if ride is not None:
            self._store.alight()
            await ride
            self._arrive(ride)  # its callback may still be waiting for its turn

    def _rest_seconds(self) -> float:
        """While nothing may be started, a rate that allows more is no reason to get up."""
        return POLL_SECONDS if self._busy() else self._heat.rest_seconds(self._clock.monotonic(), POLL_SECONDS)

    def _ride(self) -> asyncio.Future[Claimed | None] | None:
        demand = self.room()
        if demand is None:
            return None
        self._heat.look()
        self._not_claiming.clear()
        self._riding = ride = self._store.ride(self._claimer.riding, demand)
        ride.add_done_callback(self._arrive)
        return ride

    def _arrive(self, ride: asyncio.Future[Claimed | None]) -> None:
        """Begin what a ride has brought, at once and only once."""
        if ride is not self._riding:
            return
        self._riding = None
        self._not_claiming.set()
        if not ride.cancelled() and ride.exception() is None and (claimed := ride.result()) is not None:
            self._note(claimed)
            self._wake.set()

    def _note(self, claimed: Claimed) -> None:
        probe.reach("worker.claimed")
        self._heat.note(claimed, self._clock.monotonic())
        self._begin(claimed.leases)

    def _busy(self) -> bool:
        return self.stopping or self._settler.trouble

    async def _claim_once(self) -> bool:
        if self._settler.trouble:
            return False
        suspects = await self._suspects.claim() if self._heat.suspects else 0
        if self._busy():
            return suspects > 0
        demand = self._underway.demand(self._store.owner, self._heat.levels(self._clock.monotonic()))
        if demand is None:
            return suspects > 0
        probe.reach("worker.before_claim")
        self._heat.look()
        claimed = await self._take(self._claimer.verb, demand)
        self._note(claimed)
        return bool(claimed.leases) or claimed.expired > 0 or suspects > 0

    async def _take(self, verb: Verb[D, R], demand: D) -> R:
        """A claim that a stop can wait for: what comes of it must be handed back."""
        self._not_claiming.clear()
        try:
            return await self._store.submit(verb, demand)
        finally:
            self._not_claiming.set()

    async def _claim_suspects(self, demand: SuspectDemand) -> int:
        if self.stopping:
            return 0
        leases = await self._take(CLAIM_SUSPECTS, demand)
        self._begin(leases)
        return len(leases)

    async def stop(self, seconds: float) -> None:
        """Take nothing more. A claim that is on its way is waited for: it would take what is handed back."""
        self.stopping = True
        self._wake.set()
        self._store.alight()
        await self._clock.wait(self._not_claiming, seconds)
