"""The claimer takes as much work as the worker can start, and leaves a claim with the store when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ulak.clock import Clock
from ulak.errors import Error
from ulak.log import get_logger
from ulak.spine import probe
from ulak.spine.handler import Handlers
from ulak.spine.job import Lease
from ulak.spine.loops.hints import WorkHints
from ulak.spine.loops.running import RunningJobs
from ulak.spine.loops.settler import Settler
from ulak.spine.loops.suspects import Suspects
from ulak.spine.store import Store, Verb
from ulak.spine.units.claim import CLAIM_SUSPECTS, Claimed, ClaimVerbs, Demand, SuspectDemand

log = get_logger("ulak.worker")

D = TypeVar("D")
R = TypeVar("R")

POLL_SECONDS = 1.0


class Claimer:
    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        running: RunningJobs,
        settler: Settler,
        begin: Callable[[list[Lease]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._running_jobs = running
        self._settler = settler
        self._begin = begin
        self._hints = WorkHints(handlers)
        self._suspects = Suspects(store, handlers, clock, self._hints, running, self._claim_suspects)
        self._verbs = ClaimVerbs()
        self._piggyback: asyncio.Future[Claimed | None] | None = None
        self._not_claiming = asyncio.Event()
        self._not_claiming.set()
        self._look_everywhere_at = 0.0
        self._wake = asyncio.Event()
        self.stopping = False

    # Hints of work

    def note_ready(self, ready: set[tuple[str, int]]) -> None:
        """A commit made these (kind, priority) pairs ready."""
        self._hints.add(ready)
        self._wake.set()

    def note_all(self) -> None:
        """Look everywhere: at the start, and once in a while, because a wake-up may have been lost."""
        self._hints.add_all()
        self._wake.set()

    def note_free(self, suspects: bool) -> None:
        """Attempts have ended, of suspects among others or not."""
        if suspects:
            self._hints.suspects = True
        self._wake.set()

    def waits_for_rate(self, kind: str) -> bool:
        """Whether work of this kind has to wait for its rate."""
        return self._hints.waits_for_rate(kind, self._clock.monotonic())

    def free(self) -> Demand | None:
        """Return the demand for whatever kind becomes ready next; None without capacity."""
        return None if self._busy() else self._running_jobs.demand_of_any(self._store.owner, self._hints.resting)

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
            self._hints.add_all()

    async def _rest(self) -> None:
        """Rest while there is nothing to do. A job that becomes ready now is claimed by the commit that makes it so."""
        piggyback = self._leave_claim()
        await self._clock.wait(self._wake, self._rest_seconds())
        if piggyback is not None:
            self._store.withdraw_piggyback()
            await piggyback
            self._begin_piggyback(piggyback)  # its callback may still be waiting for its turn

    def _rest_seconds(self) -> float:
        """While nothing may be started, a rate that allows more does not wake the claimer."""
        return POLL_SECONDS if self._busy() else self._hints.rest_seconds(self._clock.monotonic(), POLL_SECONDS)

    def _leave_claim(self) -> asyncio.Future[Claimed | None] | None:
        demand = self.free()
        if demand is None:
            return None
        self._hints.claim_sent()
        self._not_claiming.clear()
        self._piggyback = piggyback = self._store.piggyback(self._verbs.piggyback, demand)
        piggyback.add_done_callback(self._begin_piggyback)
        return piggyback

    def _begin_piggyback(self, piggyback: asyncio.Future[Claimed | None]) -> None:
        """Begin the jobs that the piggybacked claim has brought, at once and only once."""
        if piggyback is not self._piggyback:
            return
        self._piggyback = None
        self._not_claiming.set()
        if not piggyback.cancelled() and piggyback.exception() is None and (claimed := piggyback.result()) is not None:
            self._note(claimed)
            self._wake.set()

    def _note(self, claimed: Claimed) -> None:
        probe.reach("worker.claimed")
        self._hints.note(claimed, self._clock.monotonic())
        self._begin(claimed.leases)

    def _busy(self) -> bool:
        return self.stopping or self._settler.trouble

    async def _claim_once(self) -> bool:
        if self._settler.trouble:
            return False
        suspects = await self._suspects.claim() if self._hints.suspects else 0
        if self._busy():
            return suspects > 0
        demand = self._running_jobs.demand(self._store.owner, self._hints.levels(self._clock.monotonic()))
        if demand is None:
            return suspects > 0
        probe.reach("worker.before_claim")
        self._hints.claim_sent()
        claimed = await self._take(self._verbs.verb, demand)
        self._note(claimed)
        return bool(claimed.leases) or claimed.expired > 0 or suspects > 0

    async def _take(self, verb: Verb[D, R], demand: D) -> R:
        """Claim in a task that a stop can wait for: the jobs that it brings must be handed back."""
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

    def claim_anew(self) -> None:
        """The limits have changed: a claim that waits with the store was made with the old ones."""
        self._store.withdraw_piggyback()
        self.note_all()

    async def claims_ended(self, seconds: float) -> None:
        """Wait for a claim that is on its way; one that waits with the store has been taken back."""
        await self._clock.wait(self._not_claiming, seconds)

    async def stop(self, seconds: float) -> None:
        """Claim nothing more, and wait for a claim that is under way: it would take the jobs that are handed back."""
        self.stopping = True
        self._wake.set()
        self._store.withdraw_piggyback()
        await self.claims_ended(seconds)
