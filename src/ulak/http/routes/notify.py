"""The notify room's door: accept one or many in front, everything else through FastAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.responses import StreamingResponse

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.channels.recipient import MAX_RECIPIENT
from ulak.errors import Invalid
from ulak.http import prefer
from ulak.http.batch import BatchVerdict, decode_batch, reply_batch
from ulak.http.caller import Needs
from ulak.http.hot_routes import HotRoute, Receive, Routes, Scope, Send, idempotency_key, read_body, reply
from ulak.http.routes.notify_endpoints import endpoints_router, templates_router
from ulak.http.routes.notify_models import (
    InboxOut,
    MarkedOut,
    NotificationOut,
    Page,
    StatusOut,
    inbox_item_out,
    notification_out,
)
from ulak.http.routes.view import Reveal, revealed
from ulak.http.segment import SegmentRoute
from ulak.http.sse import sse, sse_reset, stream_of
from ulak.ids import Ids
from ulak.notify.decide import MAX_REFERENCE
from ulak.notify.inbox import InboxItem
from ulak.notify.model import AcceptedNotification, Request, Status
from ulak.notify.stream import InboxStream
from ulak.spine.event import Reset

ONLY_NOTIFIERS = [Depends(Needs("notify"))]
Notifier = Annotated[Caller, ONLY_NOTIFIERS[0]]
Recipient = Annotated[
    str,
    Path(
        description="Percent-encoded, a slash in it as `%2F`; no control characters.",
        max_length=MAX_RECIPIENT,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        examples=["ada"],
    ),
]

EXAMPLE = {
    "notificationType": "EMAIL",
    "recipient": "user@example.com",
    "subject": "Welcome",
    "body": "Welcome to our service!",
    "priority": "NORMAL",
    "metadata": {"campaignId": "123"},
}


def routes(ulak: Ulak) -> Routes:
    return Routes(
        hot=(_accept_route(ulak), _batch_route(ulak)),
        routers=(_notifications(ulak), _inbox(ulak), endpoints_router(ulak), templates_router(ulak)),
        takes_work=(("POST", "/api/webhook-endpoints/test"),),
        scope="send notifications and look at them",
    )


def _accept_route(ulak: Ulak) -> HotRoute:
    encode = msgspec.json.Encoder().encode

    async def accept(scope: Scope, receive: Receive, send: Send, caller: Caller) -> int:
        request = ulak.notify.decode(await read_body(receive))
        accepted = await ulak.notify.accept(request, idempotency_key(scope), caller.id)
        return await reply(send, 202, encode(accepted))

    return HotRoute(
        "POST", "/api/notifications", accept, "notify", "Accept a notification for delivery", Request,
        AcceptedNotification,
        description="Answers as soon as it is durable. `notificationType`, `recipient` and `body` are needed; "
        "instead of `body` you may give `template` and its `variables`.",
        headers={
            "Idempotency-Key": "A repeat with the same key and body gets the first answer; it is sent once.",
            **prefer.HEADER,
        },
        tag="notifications", examples={"email": EXAMPLE}, statuses=(400, 401, 403, 409, 413, 429, 500, 503),
        required=("notificationType", "recipient"),
    )  # fmt: skip


def _batch_route(ulak: Ulak) -> HotRoute:
    async def accept_many(scope: Scope, receive: Receive, send: Send, caller: Caller) -> int:
        items = decode_batch(await read_body(receive), ulak.settings.http.max_batch)
        return await reply_batch(send, await ulak.notify.accept_batch(items, idempotency_key(scope), caller.id))

    return HotRoute(
        "POST", "/api/notifications/batch", accept_many, "notify", "Accept many notifications, each on its own merits",
        list[Request], list[BatchVerdict[AcceptedNotification]], status=207, tag="notifications",
        examples={"two": [EXAMPLE, EXAMPLE]},
        headers={
            "Idempotency-Key": "A repeat of the batch gets each item's first answer; each is sent once.",
            **prefer.HEADER,
        },
        statuses=(400, 401, 403, 409, 413, 429, 500, 503),
    )  # fmt: skip


def _notifications(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/notifications", tags=["notifications"])

    @router.get("", summary="List notifications, newest first")
    async def list_notifications(
        caller: Notifier,
        status: Annotated[
            str | None, Query(description=f"One of: {', '.join(Status)}.", examples=["DELIVERED"])
        ] = None,
        notification_type: Annotated[str | None, Query(alias="notificationType")] = None,
        reference: Annotated[str | None, Query(max_length=MAX_REFERENCE, description="The sender's own name.")] = None,
        before: Annotated[str | None, Query(description="nextBefore of the page above")] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        reveal: Reveal = False,
    ) -> Page:
        """Recipients, subjects, bodies and metadata are masked unless they may be revealed and that is asked for."""
        shown = await revealed(ulak, caller, "notifications", reveal=reveal)
        found = await ulak.notify.page(
            status=status, notification_type=notification_type, reference=reference, before=before, limit=limit
        )
        following = None if found.before is None else ulak.store.ids.to_text(found.before)
        return Page(items=[notification_out(view, reveal=shown) for view in found.views], next_before=following)

    @router.get("/{identifier}", summary="One notification with its attempts and timeline")
    async def get_notification(caller: Notifier, identifier: UUID, reveal: Reveal = False) -> NotificationOut:
        shown = await revealed(ulak, caller, f"notification {identifier}", reveal=reveal)
        return notification_out(await ulak.notify.get(identifier), reveal=shown)

    @router.post("/{identifier}/cancel", summary="Cancel a notification that is not finished")
    async def cancel_notification(_: Notifier, identifier: UUID) -> StatusOut:
        return StatusOut(id=str(identifier), status=await ulak.notify.cancel(identifier))

    @router.post("/{identifier}/resend", status_code=202, summary="Send a dead letter again")
    async def resend_notification(caller: Notifier, identifier: UUID) -> StatusOut:
        """For FAILED, DEAD and HELD: the same id and idempotency key, with fresh attempts."""
        await ulak.notify.resend(identifier, who=caller.name)
        return StatusOut(id=str(identifier), status="WAITING")

    return router


def _inbox(ulak: Ulak) -> APIRouter:
    router = APIRouter(
        prefix="/api/inbox/{recipient}", tags=["inbox"], dependencies=ONLY_NOTIFIERS, route_class=SegmentRoute
    )
    stream = InboxStream(lambda: ulak.loops.tail)  # there are loops only while this Ulak is open

    @router.get("", summary="A recipient's in-app notifications, newest first")
    async def list_inbox(
        recipient: Recipient,
        unread: bool = False,
        before: UUID | None = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> InboxOut:
        start = None if before is None else ulak.store.ids.from_uuid(before)
        if before is not None and start is None:
            why = "must be an id of a notification, as nextBefore gives it"
            raise Invalid(f"before {why}", fields=[("before", why)])
        found = await ulak.notify.inbox(recipient, unread_only=unread, before=start, limit=limit)
        items = [inbox_item_out(item, ulak.store.ids) for item in found]
        following = items[-1].id if len(items) == limit else None
        return InboxOut(unread=await ulak.notify.unread(recipient), items=items, next_before=following)

    @router.post("/read", summary="Mark all as read")
    async def mark_all_read(recipient: Recipient) -> MarkedOut:
        return MarkedOut(marked=await ulak.notify.mark_read(recipient))

    @router.post("/{identifier}/read", summary="Mark one as read")
    async def mark_read(recipient: Recipient, identifier: UUID) -> MarkedOut:
        return MarkedOut(marked=await ulak.notify.mark_read(recipient, identifier))

    @router.get("/stream", summary="New in-app notifications as server-sent events", response_class=StreamingResponse)
    async def follow(
        recipient: Recipient, last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None
    ) -> StreamingResponse:
        """`notification` events from `Last-Event-ID` on; without it, from now on.

        An event `reset` (`reason`, `asked`, `oldest`, `newest`) says that some may be missing, because the log was
        pruned or restored since: read the list again. The stream then goes on from the nearest position. The header
        `X-Ulak-Cursor` is the `Last-Event-ID` to come back with if the stream breaks before its first event.
        """
        after = _cursor(last_event_id) if last_event_id else None  # a new EventSource of some libraries sends it empty
        start = await stream.begin(after)
        return stream_of(_as_events(stream.follow(recipient, start), ulak.store.ids), start.cursor)

    return router


def _cursor(last_event_id: str) -> int:
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 20):
        why = "must be the id of an event of this stream: a whole number"
        raise Invalid(f"Last-Event-ID {why}", fields=[("Last-Event-ID", why)])
    return int(last_event_id)


async def _as_events(items: AsyncIterator[tuple[int, InboxItem | Reset | None]], ids: Ids) -> AsyncIterator[bytes]:
    async for seq, item in items:
        if item is None:  # a comment alone: some clients take a block with an id and no data for an event
            yield b": still here\n\n"
        elif isinstance(item, Reset):
            yield sse_reset(item)
        else:
            yield sse(seq, "notification", inbox_item_out(item, ids).model_dump_json(by_alias=True).encode())
