"""The event log over HTTP: pages from a cursor, and a stream that goes on from where it was left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse

from ulak.app import Ulak
from ulak.errors import Conflict, Error
from ulak.http.caller import Caller, Needs
from ulak.http.hot import Routes
from ulak.http.jobs import Limit
from ulak.http.sse import sse, sse_reset, stream_of
from ulak.http.view import EventView, View, event_view
from ulak.spine.event import EventRecord, Reset, find_reset, first_seq, last_seq, read_events, read_on
from ulak.spine.store import Tx

PAGE = 500
LOOK_SECONDS = 1.0
KEEP_ALIVE_LOOKS = 15
NUMBERING_SECONDS = 0.05  # where a relay numbers the events, they are readable a moment after the commit
MOST_SEQ = 1 << 53

May = Annotated[Caller, Depends(Needs("jobs"))]
After = Annotated[int | None, Query(ge=0, le=MOST_SEQ, description="Events above this sequence number.")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{1,15}$")]


class EventPage(View):
    """In commit order. `after` is where the next page starts.

    Events before `oldest` were pruned: what lay between your cursor and it is gone.
    """

    events: list[EventView]
    after: int
    oldest: int


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak),))


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/events", tags=["events"])

    @router.get("", summary="Read events")
    async def list_events(_: May, after: After = 0, limit: Limit = 100) -> EventPage:
        """Nothing is missed or seen twice. A cursor beyond the newest event is refused: it is another store's."""
        oldest, found = await ulak.store.read(_read_checked, after or 0, limit)
        following = found[-1].seq if found else after or 0
        return EventPage(events=list(map(event_view, found)), after=following, oldest=oldest)

    @router.get("/stream", summary="Follow events", response_class=StreamingResponse)
    async def stream(_: May, after: After = None, last_event_id: LastEventId = None) -> StreamingResponse:
        """Server-sent events from `Last-Event-ID` or `after` on; without either, from now on.

        An event `reset` (`reason`, `asked`, `oldest`, `newest`) says that the log does not reach back to that cursor
        (`pruned`), or not forward to it (`ahead`: it was restored). The stream then goes on from the nearest position.
        """
        start = after if last_event_id is None else int(last_event_id)
        reset = None if start is None else await ulak.store.read(find_reset, start)
        cursor = await ulak.store.read(last_seq) if start is None else start
        return stream_of(_follow(ulak, cursor, reset))

    return router


def _read_checked(tx: Tx, after: int, limit: int) -> tuple[int, list[EventRecord]]:
    newest = last_seq(tx)
    if after > newest:
        raise Conflict(
            f"cursor {after} is beyond the newest event, {newest}: this store was restored or is another one"
        )
    return first_seq(tx), read_events(tx, after, limit)


async def _follow(ulak: Ulak, cursor: int, reset: Reset | None) -> AsyncIterator[bytes]:
    try:
        async for chunk in _chunks(ulak, cursor, reset):
            yield chunk
    except Error:
        return  # the store is closing; whoever follows comes back with the last id


async def _chunks(ulak: Ulak, cursor: int, reset: Reset | None) -> AsyncIterator[bytes]:
    quiet = 0
    yield b": following\n\n"
    with ulak.loops.watching() as news:
        while True:
            if reset is not None:
                cursor = reset.resume
                yield sse_reset(reset)
            news.clear()
            reset, events = await ulak.store.read(read_on, cursor, PAGE)
            if reset is not None:
                continue
            if events:
                cursor, quiet = events[-1].seq, 0
                yield b"".join(map(_as_event, events))
                continue
            quiet += 1
            if quiet % KEEP_ALIVE_LOOKS == 0:
                yield b": still here\n\n"
            if await ulak.clock.wait(news, LOOK_SECONDS) and ulak.store.shared:
                await ulak.clock.wait(asyncio.Event(), NUMBERING_SECONDS)


def _as_event(event: EventRecord) -> bytes:
    return sse(event.seq, event.name, event_view(event).model_dump_json())
