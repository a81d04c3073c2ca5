"""The live stream of a helper's offers: follows the event log, so it can be resumed and misses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from ulak.dispatch.views import OpenOffer, read_helper, read_open_offers
from ulak.spine.event import EventRecord, Reset
from ulak.spine.loops.tail import Tail, TailPage
from ulak.spine.store import Tx

KEEP_ALIVE_SECONDS = 15.0

_OPENED = "dispatch.offer.opened"
_OFFERS = "dispatch.offer."


@dataclass(frozen=True, slots=True)
class ClosedOffer:
    """An offer that needs no answer any more, and how it ended: accepted, rejected, expired or withdrawn."""

    id: int
    how: str


Told = tuple[int, OpenOffer | ClosedOffer | Reset | None]


class OfferStream:
    def __init__(self, open_tail: Callable[[], Tail]) -> None:
        self._tail = open_tail

    async def begin(self, after: int | None) -> TailPage:
        """Where a follower stands who has seen the log up to `after`, or nothing yet."""
        return await self._tail().begin(after)

    async def follow(self, helper: str, start: TailPage, *, fresh: bool) -> AsyncIterator[Told]:
        """(cursor, offer) for every new offer and every end of one; (cursor, None) now and then.

        A fresh follower first gets the offers that are open. (cursor, reset) when some may be missing.
        """
        tail, clock, spoken_at = self._tail(), self._tail().store.clock, float("-inf")
        for offer in await tail.store.read(_open_offers, helper) if fresh else []:
            yield start.cursor, offer
        async with aclosing(tail.follow(start)) as pages:
            async for page in pages:
                told: list[Told] = [] if page.reset is None else [(page.reset.resume, page.reset)]
                news = [one for one in page.events if one.name.startswith(_OFFERS) and _is_about(one, helper)]
                told += await tail.store.read(_offers, helper, news) if news else []
                if not told and clock.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
                    told.append((page.cursor, None))
                for one in told:
                    spoken_at = clock.monotonic()
                    yield one


def _is_about(event: EventRecord, helper: str) -> bool:
    return isinstance(event.data, dict) and event.data.get("helper") == helper


def _open_offers(tx: Tx, helper: str) -> list[OpenOffer]:
    known = read_helper(tx, helper)
    return [] if known is None else read_open_offers(tx, known.id)


def _offers(tx: Tx, helper: str, news: list[EventRecord]) -> list[Told]:
    """Of an offer that was opened and has ended since, only the end is sent."""
    still = {offer.id: offer for offer in _open_offers(tx, helper)}
    told: list[Told] = []
    for event in news:
        if event.name != _OPENED:
            told.append((event.seq, ClosedOffer(event.job, event.name.removeprefix(_OFFERS))))
        elif event.job in still:
            told.append((event.seq, still[event.job]))
    return told
