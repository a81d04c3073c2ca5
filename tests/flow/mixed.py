"""A SQLite store with something of everything in it: work in every state, a past, and what the capacity keep."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.flow.conftest import build
from tests.flow.stores import claim
from ulak import BreakerPolicy, Job, NewJob, Permanent, Transient, Ulak
from ulak.access.keys import keep_key, make_key
from ulak.clock import ManualClock
from ulak.testing import drain

DEAD_OWNER = 4711
HOOK = "https://shop.example.org/hook"


@dataclass
class Runs:
    """A handler that notes what ran, in order, and fails as it is told to."""

    order: list[Any] = field(default_factory=list)
    uncertain: list[Any] = field(default_factory=list)
    answers: dict[Any, Exception] = field(default_factory=dict)

    async def __call__(self, job: Job) -> str:
        self.order.append(job.payload)
        if job.uncertain:
            self.uncertain.append(job.payload)
        await asyncio.sleep(0)
        if job.payload in self.answers:
            raise self.answers[job.payload]
        return f"did {job.payload}"

    def on(self, ulak: Ulak) -> Ulak:
        async def run(job: Job) -> str:
            return await self(job)

        for kind in ("mail", "leased", "held", "nightly"):
            ulak.handles(kind)(run)
        ulak.handles("rated", rate_per_second=5)(run)
        ulak.handles("hook", breaker=BreakerPolicy(failures=3, open_seconds=10))(run)
        ulak.cron("night", "0 3 * * *", "nightly", "cron")
        return ulak


@dataclass
class Filled:
    """What is in the store: ids by name, the newest event, and the id of a notification that is not yet delivered."""

    ids: dict[str, int] = field(default_factory=dict)
    last_seq: int = 0
    notification: Any = None


async def fill(address: str, clock: ManualClock) -> Filled:
    filled = Filled()
    await _live(address, clock, filled)
    await _be_killed(address, clock, filled)
    return filled


async def _live(address: str, clock: ManualClock, filled: Filled) -> None:
    """A life that ends well. It leaves a past, a dead letter, an open breaker, and what is to be tried again."""
    runs = Runs(answers={"broken": Permanent("never"), "shaky": Transient("later")})
    runs.answers |= {f"hook {n}": Transient("down") for n in range(3)}
    async with runs.on(build(address, clock)) as ulak:
        for name in ("done", "broken", "shaky"):
            filled.ids[name] = await ulak.enqueue("mail", name)
        filled.ids["cancelled"] = await ulak.enqueue("mail", "cancelled", delay_seconds=5)
        await ulak.jobs.cancel(filled.ids["cancelled"])
        await ulak.enqueue_many([NewJob("hook", f"hook {n}", key="shop", slots=3) for n in range(6)])
        await ulak.enqueue("rated", "rated")
        await ulak.notify.send("IN_APP", "ayşe", "Merhaba")
        await _dispatch(ulak)
        await drain(ulak)
        await ulak.notify.endpoints.register(HOOK)
        await ulak.store.write(keep_key, make_key("ops", ["admin"], clock.now()).key)


async def _dispatch(ulak: Ulak) -> None:
    here = {"latitude": 41.0, "longitude": 29.0}
    await ulak.dispatch.put_helper("ahmet", here)
    view = await ulak.dispatch.open(here, requester_id="fatma", category="market")
    await ulak.dispatch.accept(view.task.id, "ahmet")


async def _be_killed(address: str, clock: ManualClock, filled: Filled) -> None:
    """A life that takes work and ends with a kill, so leases are left."""
    ids = filled.ids
    async with build(address, clock, work=False) as ulak:
        for name, then in (("leased", "resend"), ("held", "hold")):
            ids[name] = await ulak.enqueue(name, name, on_uncertain=then)
            await claim(ulak, name, owner=DEAD_OWNER)
        await ulak.enqueue_many([NewJob("mail", f"line {n}", key="line") for n in range(5)])
        await ulak.enqueue_many([NewJob("mail", f"wide {n}", key="wide", slots=2) for n in range(4)])
        await ulak.enqueue_many([NewJob("mail", f"plain {n}") for n in range(50)])
        ids["later"] = await ulak.enqueue("mail", "later", delay_seconds=3600)
        ids["unique"] = await ulak.enqueue("mail", "unique", unique_key="one", delay_seconds=3600)
        filled.notification = await ulak.notify.send("IN_APP", "ayşe", "İkinci", idempotency_key="second")
        filled.last_seq = (await ulak.jobs.events(limit=100_000))[-1].seq
