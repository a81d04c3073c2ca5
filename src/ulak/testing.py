"""For tests of code that uses Ulak: a store that is not kept, a clock that you move, drain, and assertions."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Literal

from ulak.app import Ulak
from ulak.clock import ManualClock
from ulak.spine.job import Record
from ulak.spine.jobs import MOST

__all__ = ["ManualClock", "advance", "assert_enqueued", "drain", "enqueued"]

_WORKING: tuple[Literal["ready"], Literal["running"], Literal["suspect"]] = ("ready", "running", "suspect")
PATIENCE_SECONDS = 30.0
MOST_NAMED = 10


async def drain(ulak: Ulak) -> None:
    """Run until nothing that can run now is left: ready work is done, deferred work waits for its time."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS) as limit:
            while await _busy(ulak) or await _promoted(ulak):
                ulak.loops.changed.clear()
                if await _busy(ulak):
                    await ulak.loops.changed.wait()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(_what_goes_on(ulak)) from error


def _what_goes_on(ulak: Ulak) -> str:
    worker = ulak.loops.worker
    waiting = worker.ahead.held()
    leases = sorted((one.lease for one in worker.running if one not in waiting), key=lambda lease: lease.id)
    if not leases:
        return (
            f"after {PATIENCE_SECONDS:g} s there is work that nobody here runs, see ulak.jobs.counts(); "
            "is this Ulak open with work=False, or is another process at work on the store?"
        )
    some = ", ".join(f"{lease.kind} {lease.id}" for lease in leases[:MOST_NAMED])
    return (
        f"after {PATIENCE_SECONDS:g} s {len(leases)} job(s) still run: {some}"
        f"{', …' if len(leases) > MOST_NAMED else ''}; end what their handlers wait for, "
        "or advance the clock by more than their timeout_seconds"
    )


async def _busy(ulak: Ulak) -> bool:
    worker = ulak.loops.worker
    worker.taker.heat_all()
    worker.ahead.start_due()
    counts = await ulak.jobs.counts()
    held = Counter(one.lease.kind for one in worker.ahead.held())  # claimed, but not due yet
    handled = [kind for kind in counts if ulak.handlers.get(kind) is not None and not worker.taker.rests(kind)]
    working = {kind: sum(counts[kind].get(name, 0) for name in _WORKING) for kind in handled}
    return len(worker.running) > held.total() or any(number > held[kind] for kind, number in working.items())


async def _promoted(ulak: Ulak) -> bool:
    """Whether something can run that could not before: it is due, or what stood before it was too old."""
    await ulak.loops.expire()
    await ulak.loops.alarm.promote_due()
    return await _busy(ulak)


async def advance(ulak: Ulak, seconds: float) -> None:
    """Let time pass on the manual clock, then drain: what has become due is done when this returns."""
    clock = ulak.clock
    if not isinstance(clock, ManualClock):
        raise TypeError("advance needs a manual clock: Ulak(..., clock=ManualClock())")
    clock.advance(seconds)
    await drain(ulak)


async def enqueued(ulak: Ulak, kind: str) -> list[Record]:
    """Live jobs of a kind, oldest first."""
    found: list[Record] = []
    page = await ulak.jobs.list(kind=kind, limit=MOST)
    while page:  # finished ones stand between them, however many
        found += [record for record in page if record.settled_at is None]
        page = await ulak.jobs.list(kind=kind, before=page[-1].id, limit=MOST)
    return found[::-1]


async def assert_enqueued(ulak: Ulak, kind: str, payload: Any = ..., *, times: int = 1) -> None:
    """Exactly so many live jobs of this kind (and payload, if given)."""
    found = await enqueued(ulak, kind)
    fitting = [record for record in found if payload is ... or record.payload == payload]
    if len(fitting) != times:
        raise AssertionError(
            f"expected {times} live {kind} job(s)"
            f"{'' if payload is ... else f' with payload {payload!r}'}, found {len(fitting)}; "
            f"payloads of that kind: {[record.payload for record in found]!r}"
        )
