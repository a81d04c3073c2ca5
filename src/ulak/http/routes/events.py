"""The event log over HTTP: pages from a cursor, and a stream that goes on from where it was left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse

from ulak import codec
from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import Clock
from ulak.errors import Error
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.jobs import Limit
from ulak.http.routes.view import EventView, View, event_fields, event_view
from ulak.http.sse import sse, sse_reset, stream_of
from ulak.spine.event import EventRecord, last_seq, read_page
from ulak.spine.loops.tail import Tail, TailPage
from ulak.spine.store import Tx

KEEP_ALIVE_SECONDS = 15.0
PACE_SECONDS = 0.05  # what many commits bring is read and sent together, or each accept pays for a look of its own
MAX_SEQ = 1 << 53

May = Annotated[Caller, Depends(Needs("jobs"))]
After = Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="Events above this sequence number.")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$")]


class EventPage(View):
    """In commit order. `after` is where the next page starts. A page may be short; only an empty one is the end.

    Events before `oldest` were pruned: what lay between your cursor and it is gone. `newest` is the last one there is.
    """

    events: list[EventView]
    after: int
    oldest: int
    newest: int


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak),))


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/events", tags=["events"])

    @router.get("", summary="Read events")
    async def list_events(_: May, after: After = 0, limit: Limit = 100) -> EventPage:
        """Nothing is missed or seen twice. A cursor beyond the newest event is refused: it is another store's."""
        newest, (oldest, found) = await ulak.store.read(_newest_and_page, after or 0, limit)
        following = found[-1].seq if found else after or 0
        return EventPage(events=list(map(event_view, found)), after=following, oldest=oldest, newest=newest)

    @router.get("/stream", summary="Follow events", response_class=StreamingResponse)
    async def stream(_: May, after: After = None, last_event_id: LastEventId = None) -> StreamingResponse:
        """Server-sent events from `Last-Event-ID` or `after` on; without either, from now on.

        An event `reset` (`reason`, `asked`, `oldest`, `newest`) says that the log does not reach back to that cursor
        (`pruned`), or not forward to it (`ahead`: it was restored). The stream then goes on from the nearest position.
        The header `X-Ulak-Cursor` is the `Last-Event-ID` to come back with if it breaks before its first event.
        """
        tail = ulak.loops.tail
        start = await tail.begin(int(last_event_id) if last_event_id else after)
        return stream_of(_follow(tail, start), start.cursor)

    return router


def _newest_and_page(tx: Tx, after: int, limit: int) -> tuple[int, tuple[int, list[EventRecord]]]:
    return last_seq(tx), read_page(tx, after, limit)


async def _follow(tail: Tail, start: TailPage) -> AsyncIterator[bytes]:
    yield b": following\n\n"
    try:
        async with aclosing(tail.follow(start)) as pages:
            async for chunk in _chunks(pages, tail.store.clock):
                yield chunk
    except Error:
        return  # the store is closing; whoever follows comes back with the last id


async def _chunks(pages: AsyncIterator[TailPage], clock: Clock) -> AsyncIterator[bytes]:
    spoken_at = clock.monotonic()
    async for page in pages:
        chunk = b"" if page.reset is None else sse_reset(page.reset)
        chunk += b"".join(map(_as_event, page.events))
        if not chunk and clock.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
            chunk = b": still here\n\n"
        if chunk:
            spoken_at = clock.monotonic()
            yield chunk
        if page.events and not page.more:
            await clock.wait(asyncio.Event(), PACE_SECONDS)


def _as_event(event: EventRecord) -> bytes:
    return sse(event.seq, event.name, codec.encode(event_fields(event)))
