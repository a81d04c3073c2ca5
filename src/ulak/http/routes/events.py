"""The event log over HTTP: pages, a stream that goes on from where it was left, and messages that no topic takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import Field, StrictBool

from ulak import codec
from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import Clock
from ulak.errors import Error, Invalid
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.jobs import Limit
from ulak.http.routes.view import EventView, View, event_fields, event_view
from ulak.http.sse import sse, sse_reset, stream_of
from ulak.masking import mask_text
from ulak.settings.bus import TOPIC
from ulak.spine.event import EventRecord, last_seq, read_page
from ulak.spine.loops.tail import Tail, TailPage
from ulak.spine.store import Tx

KEEP_ALIVE_SECONDS = 15.0
PACE_SECONDS = 0.05  # what many commits bring is read and sent together, or each accept pays for a look of its own
MAX_SEQ = 1 << 53

May = Annotated[Caller, Depends(Needs("jobs"))]
MayOperate = Annotated[Caller, Depends(Needs("admin"))]
After = Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="Events above this sequence number.")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$")]
Topic = Annotated[str, Path(pattern=TOPIC, examples=["cinga.action.executed"])]
WAITING_ID = r"^[0-9]{1,15}-[0-9]{1,9}$"


class EventPage(View):
    """In commit order. `after` is where the next page starts. A page may be short; only an empty one is the end.

    Events before `oldest` were pruned: what lay between your cursor and it is gone. `newest` is the last one there is.
    """

    events: list[EventView]
    after: int
    oldest: int
    newest: int


class TopicView(View):
    """A topic with messages that it does not take. The process that runs the relay knows why."""

    topic: str
    number: int
    cause: str | None


class TopicList(View):
    topics: list[TopicView]


class WaitingView(View):
    """A message that waits. What it says is not shown: it may name people."""

    id: str
    key: str | None
    bytes: int


class WaitingPage(View):
    items: list[WaitingView]
    next: str | None


class DropRequest(View):
    """One message by its `id`, or `all` that wait for the topic."""

    id: Annotated[str | None, Field(pattern=WAITING_ID, examples=["1200-3"])] = None
    all: StrictBool = False


class DroppedView(View):
    dropped: int


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak), _waiting(ulak)))


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
        chunk += _as_events(page.events)
        if not chunk and clock.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
            chunk = b": still here\n\n"
        if chunk:
            spoken_at = clock.monotonic()
            yield chunk
        if page.events and not page.more:
            await clock.wait(asyncio.Event(), PACE_SECONDS)


def _as_events(events: list[EventRecord]) -> bytes:
    """Neighbours that agree differ in two numbers: the rest is masked and encoded once for all of them."""
    chunks: list[bytes] = []
    before, form = None, b""
    for event in events:
        if before is None or not event.job or not _agree(event, before):
            chunks.append(_as_event(event))
            before, form = event, b""
        else:
            form = form or _form_of(event)  # two that agree are worth one
            chunks.append(form % (event.seq, event.seq, event.job))
    return b"".join(chunks)


def _agree(one: EventRecord, other: EventRecord) -> bool:
    """Their entry of the log is the same, or says the same."""
    return one.at is other.at and one.data is other.data and one.name == other.name and one.kind == other.kind


def _form_of(event: EventRecord) -> bytes:
    """A place for the sequence number, twice, and one for the job."""
    fields = event_fields(event)
    at, name, kind, data = (codec.encode(fields[one]).replace(b"%", b"%%") for one in ("at", "name", "kind", "data"))
    text = b'{"seq":%%d,"at":%b,"name":%b,"job":"%%d","kind":%b,"data":%b}' % (at, name, kind, data)
    return b"id: %%d\nevent: %b\ndata: %b\n\n" % (event.name.encode().replace(b"%", b"%%"), text)


def _as_event(event: EventRecord) -> bytes:
    return sse(event.seq, event.name, codec.encode(event_fields(event)))


def _waiting(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/bus/waiting", tags=["bus"])

    @router.get("", summary="Topics that do not take their messages")
    async def list_topics(_: MayOperate) -> TopicList:
        return TopicList(topics=[TopicView(**one._asdict()) for one in await ulak.bus.waiting()])

    @router.get("/{topic}", summary="The messages that wait for a topic, oldest first")
    async def list_waiting(
        _: MayOperate,
        topic: Topic,
        after: Annotated[str | None, Query(pattern=WAITING_ID, description="`next` of the page above.")] = None,
        limit: Limit = 50,
    ) -> WaitingPage:
        found = await ulak.bus.waiting_of(topic, after=after, limit=limit)
        items = [WaitingView(id=one.id, key=_shown(one.message.key), bytes=len(one.message.value)) for one in found]
        return WaitingPage(items=items, next=items[-1].id if len(items) == limit else None)

    @router.post("/{topic}/drop", summary="Drop a message that its topic will never take, or all that wait for it")
    async def drop(caller: MayOperate, topic: Topic, asked: DropRequest) -> DroppedView:
        """Dropped messages are gone for good, and the audit log says whose word it was. Those behind them follow."""
        if (asked.id is None) != asked.all:
            raise Invalid('give an id, or "all": true', fields=[("id", "is missing, or given together with all")])
        return DroppedView(dropped=await ulak.bus.drop(topic, asked.id, who=caller.name))

    return router


def _shown(key: bytes | None) -> str | None:
    return None if key is None else mask_text(key.decode("utf-8", "replace"))
