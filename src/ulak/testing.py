"""For tests of code that uses Ulak: a store that is not kept, a clock that you move, drain, and assertions."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Literal

import msgspec

from ulak.app import Ulak
from ulak.changes.sources.contract import check_source
from ulak.channels.channel import Channel, Message, Receipt
from ulak.clock import ManualClock
from ulak.errors import Permanent
from ulak.spine.job import Record
from ulak.spine.jobs import MAX_LISTED

__all__ = ["ManualClock", "advance", "assert_enqueued", "check_channel", "check_source", "drain", "enqueued"]

_WORKING: tuple[Literal["ready"], Literal["running"], Literal["suspect"]] = ("ready", "running", "suspect")
PATIENCE_SECONDS = 30.0
MAX_NAMED = 10


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
    waiting = worker.held.attempts()
    leases = sorted((one.lease for one in worker.running if one not in waiting), key=lambda lease: lease.id)
    if not leases:
        return (
            f"after {PATIENCE_SECONDS:g} s there is work that nobody here runs, see ulak.jobs.counts(); "
            "is this Ulak open with work=False, or is another process at work on the store?"
        )
    some = ", ".join(f"{lease.kind} {lease.id}" for lease in leases[:MAX_NAMED])
    return (
        f"after {PATIENCE_SECONDS:g} s {len(leases)} job(s) still run: {some}"
        f"{', …' if len(leases) > MAX_NAMED else ''}; end what their handlers wait for, "
        "or advance the clock by more than their timeout_seconds"
    )


async def _busy(ulak: Ulak) -> bool:
    worker = ulak.loops.worker
    worker.claimer.note_all()
    worker.held.start_due()
    counts = await ulak.jobs.counts()
    held = Counter(one.lease.kind for one in worker.held.attempts())  # claimed, but not due yet
    handled = [kind for kind in counts if _may_run(ulak, kind) and not worker.claimer.waits_for_rate(kind)]
    working = {kind: sum(counts[kind].get(name, 0) for name in _WORKING) for kind in handled}
    return len(worker.running) > held.total() or any(number > held[kind] for kind, number in working.items())


def _may_run(ulak: Ulak, kind: str) -> bool:
    """Whether the kind has a handler, is served here, and is not paused."""
    handler = ulak.handlers.get(kind)
    return handler is not None and ulak.loops.steering.limit(handler) > 0


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
    page = await ulak.jobs.list(kind=kind, limit=MAX_LISTED)
    while page:  # finished ones stand between them, however many
        found += [record for record in page if record.settled_at is None]
        page = await ulak.jobs.list(kind=kind, before=page[-1].id, limit=MAX_LISTED)
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


async def check_channel(channel: Channel, message: Message) -> Receipt:
    """The contract of a channel, tried on one that can deliver this message; returns the receipt of the delivery.

    For plug-ins and built-ins alike. The message must be one that the channel's provider, real or a local server of
    the test, accepts.
    """
    assert isinstance(channel, Channel), "a channel has name, can_handle, handle and close"
    assert channel.name, "a channel has a name, for logs and metrics"
    assert channel.can_handle(message.notification_type), "the channel must carry the message's type"
    assert not channel.can_handle("NO_SUCH_TYPE"), "the channel must not carry a type that nobody knows"
    await _check_expiry(channel, message)
    receipt = await channel.handle(message)
    assert isinstance(receipt, Receipt), "handle returns a Receipt"
    provider, colon, identifier = (receipt.provider_id or "").partition(":")
    assert all((provider, colon, identifier)), "the receipt's provider_id is <provider>:<id>"
    assert message.recipient not in identifier, "the receipt's provider_id is shown in lists: no recipient in it"
    await channel.close()
    await channel.close()  # a stop that was broken off closes again
    return receipt


async def _check_expiry(channel: Channel, message: Message) -> None:
    late = msgspec.structs.replace(message, began_millis=2000, expires_millis=1000)
    failure: Permanent | None = None
    try:
        await channel.handle(late)
    except Permanent as error:
        failure = error
    assert failure is not None, "an expired message must not be sent"
    assert (failure.code or "").endswith("_EXPIRED"), "the failure of an expired message has the code …_EXPIRED"
    assert message.recipient not in str(failure), "a failure must not name the recipient"
