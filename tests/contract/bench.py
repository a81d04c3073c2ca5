"""Speaks the spine's verbs to a store, in the words of a worker: add, claim, settle."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ulak import codec
from ulak.clock import ManualClock
from ulak.spine.event import EventRecord, read_events
from ulak.spine.job import READY, Lease, Row
from ulak.spine.outcome import DONE, Outcome, Settlement
from ulak.spine.query import Queries
from ulak.spine.store import AfterCommit, Store
from ulak.spine.units.claim import CLAIM_SUSPECTS, Claimed, ClaimVerbs, Demand, SuspectDemand, Want
from ulak.spine.units.enqueue import ENQUEUE, ENQUEUE_ONE, Full
from ulak.spine.units.settle import SETTLE
from ulak.spine.units.timers import LOOK_AHEAD, PROMOTE_DUE, budget_of

sql = Queries("ulak.spine")

LEVELS = (0, 1, 2, 3)


class Ears:
    """A listener that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.ready: set[tuple[str, int]] = set()
        self.free: list[str] = []
        self.cancelled: list[int] = []
        self.behind = False
        self.due_at: int | None = None
        self.failure: Exception | None = None
        self._changed = asyncio.Event()

    def committed(self, buffers: AfterCommit, freed: list[str]) -> None:
        self.ready |= buffers.ready
        self.free += freed
        self.cancelled += buffers.cancelled
        self.behind |= buffers.behind
        self.due_at = buffers.due_at if buffers.due_at is not None else self.due_at
        self._changed.set()

    def lost(self, reason: Exception) -> None:
        self.failure = reason
        self._changed.set()

    async def until(self, condition: Any) -> None:
        """Wait until a commit, here or elsewhere, has made the condition true."""
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Bench:
    def __init__(self, store: Store, ears: Ears, clock: ManualClock) -> None:
        self.store = store
        self.ears = ears
        self.clock = clock
        self._claimer = ClaimVerbs()

    def row(self, kind: str = "mail", payload: Any = None, **columns: Any) -> Row:
        now = self.store.clock.now()
        usual: dict[str, Any] = {
            "id": self.store.ids.take(now), "kind": kind, "key": None, "slots": 1, "slot": None, "prio": 2,
            "due_at": now, "state": READY, "accepted_at": now, "expires_at": None, "unique_key": None,
            "continuation": None, "hold": 0, "payload": codec.encode(payload),
        }  # fmt: skip
        return Row(**(usual | columns))

    async def add(self, kind: str = "mail", payload: Any = None, **columns: Any) -> int:
        """Enqueue one job; answers the id of the live job."""
        verdict = await self.store.submit(ENQUEUE_ONE, self.row(kind, payload, **columns))
        assert not isinstance(verdict, Full), verdict
        return verdict

    async def offer(self, *rows: Row) -> list[int] | Full:
        return await self.store.submit(ENQUEUE, rows)

    async def claim(
        self, kind: str = "mail", free: int = 100, levels: Sequence[int] = LEVELS, rate: float | None = None
    ) -> list[Lease]:
        return (await self.demand(kind, free, levels, rate)).leases

    async def demand(
        self, kind: str = "mail", free: int = 100, levels: Sequence[int] = LEVELS, rate: float | None = None
    ) -> Claimed:
        want = Want(kind, free, tuple(levels), rate)
        return await self.store.submit(
            self._claimer.verb, Demand(self.store.owner, (want,), free=free, lanes={"async": free})
        )

    async def claim_suspects(self, *kinds: str, alone: bool = False, rate: float | None = None) -> list[Lease]:
        names = kinds or ("mail",)
        rates = {} if rate is None else dict.fromkeys(names, rate)
        demand = SuspectDemand(self.store.owner, names, 100, alone, rates)
        return await self.store.submit(CLAIM_SUSPECTS, demand)

    async def settle(
        self, leases: Sequence[Lease], outcome: Outcome | None = None, resume_at: int = 0
    ) -> set[tuple[int, int]]:
        settlements = [
            Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, outcome or DONE, resume_at) for one in leases
        ]
        return await self.store.submit(SETTLE, settlements)

    async def promote_due(self) -> int | None:
        return await self.store.submit(PROMOTE_DUE, None)

    async def look_ahead(self, *kinds: str, free: int = 100, rate: float | None = None) -> int | None:
        """As the timers of a worker that has so much capacity for each of these kinds; answers when to look again."""
        wants = tuple(Want(kind, free, (), rate) for kind in kinds or ("mail",))
        demand = Demand(self.store.owner, wants, free=free, lanes={"async": free})
        return (await self.store.submit(LOOK_AHEAD, budget_of(demand, ()))).again_at

    def piggyback(self, *kinds: str, free: int = 100) -> asyncio.Future[Claimed | None]:
        wants = tuple(Want(kind, free, ()) for kind in kinds or ("mail",))
        return self.store.piggyback(
            self._claimer.piggyback, Demand(self.store.owner, wants, free=free, lanes={"async": free})
        )

    async def tally(self, kind: str = "mail") -> dict[str, int]:
        rows = await self.store.read(lambda tx: tx.rows(sql.read_tally))
        return {word: int(number) for word, of, number in rows if of == kind}

    async def live(self) -> Counter[str]:
        rows = await self.store.read(lambda tx: tx.rows(sql.count_live))
        return Counter({kind: number for kind, number, _ in rows})

    async def events(self, number: int) -> list[EventRecord]:
        """The first `number` events; waits until they can be read."""
        found: list[EventRecord] = []
        async with asyncio.timeout(20):
            while len(found) < number:
                self.ears._changed.clear()
                after = found[-1].seq if found else 0
                more = await self.store.read(read_events, after, 10_000)
                found += more
                if not more:
                    await self.ears._changed.wait()
        return found

    async def record(self, identifier: int, table: str) -> tuple[Any, ...] | None:
        query = {"job": sql.read_job, "past": sql.read_past, "dead": sql.read_dead}[table]
        return await self.store.read(lambda tx: tx.row(query, id=identifier))


def ids_of(leases: Sequence[Lease]) -> list[int]:
    return [one.id for one in leases]
