"""`ulak.notify`: the verbs of the room. Send, look up, list, cancel, read the inbox, manage webhook endpoints."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from ulak import codec, ids
from ulak.clock import to_datetime, to_millis
from ulak.errors import Conflict, Error, IllegalTransition, Invalid, NotFound, TooLarge
from ulak.notify import decide, inbox
from ulak.notify.endpoint import Endpoints
from ulak.notify.idempotency import ACCEPT_ONCE, Mismatch, Once, Replayed
from ulak.notify.model import ALL_KINDS, PRIORITIES, Accepted, Notification, Request, kind_of
from ulak.notify.records import NEWEST, Found, View, find_views, read_view
from ulak.notify.settings import NotifyOptions
from ulak.notify.template import Rendered, Templates
from ulak.spine.admission import Gate
from ulak.spine.cancel import CANCEL
from ulak.spine.dead_letters import REDRIVE
from ulak.spine.enqueue import ENQUEUE_ONE
from ulak.spine.form import MOST_PAYLOAD_BYTES, soon_enough
from ulak.spine.job import READY, Row
from ulak.spine.store import Store

Verdicts = list[Accepted | Error]

_decoder = msgspec.json.Decoder(Request)
_batch_decoder = msgspec.json.Decoder(list[msgspec.Raw])


def decode_request(body: bytes) -> Request:
    """A request from JSON; one Invalid names every field of a wrong type or name."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _refusal(body, error) from None


def _refusal(body: bytes, error: Exception) -> Invalid:
    try:
        document = codec.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Invalid(f"the body is not JSON: {error}", fields=[("", "must be a JSON object")])
    return decide.refusal(decide.explain(document))


def decode_batch(body: bytes, most: int) -> list[bytes]:
    try:
        items = _batch_decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"the body is not a JSON array of notifications: {error}") from error
    if not 0 < len(items) <= most:
        raise Invalid(f"a batch has 1 to {most} notifications, not {len(items)}")
    return [bytes(item) for item in items]


class Notify:
    def __init__(
        self,
        options: NotifyOptions,
        templates: Templates,
        known_types: frozenset[str],
        open_parts: Callable[[], tuple[Store, Gate]],
        endpoints: Endpoints,
    ) -> None:
        self._options = options
        self._templates = templates
        self._known_types = known_types
        self._kinds = {name: kind_of(name) for name in known_types}
        self._parts = open_parts
        self.endpoints = endpoints

    # Sending

    async def send(
        self,
        notification_type: str,
        recipient: str,
        body: str | None = None,
        *,
        subject: str | None = None,
        html: str | None = None,
        priority: str = "NORMAL",
        metadata: dict[str, Any] | None = None,
        expires_at: datetime | None = None,
        send_at: datetime | None = None,
        order_key: str | None = None,
        on_uncertain: str = "resend",
        template: str | None = None,
        variables: dict[str, Any] | None = None,
        language: str | None = None,
        idempotency_key: str | None = None,
    ) -> UUID:
        """Accept a notification durably; answers its id."""
        request = Request(
            notification_type=notification_type,
            recipient=recipient,
            subject=subject,
            body=body,
            html=html,
            priority=priority,
            metadata=metadata,
            expires_at=expires_at,
            send_at=send_at,
            order_key=order_key,
            on_uncertain=on_uncertain,
            template=template,
            variables=variables,
            language=language,
        )
        accepted = await self.accept(request, idempotency_key)
        return UUID(accepted.id)

    async def accept(self, request: Request, idempotency_key: str | None = None, scope: str = "") -> Accepted:
        store, gate = self._parts()
        row = self._row(request, store)
        if idempotency_key is not None:
            return await self._accept_once(gate, row, request, idempotency_key, scope)
        await gate.by_policy(row.kind, ENQUEUE_ONE, row, 1)
        return _accepted(row.id)

    async def accept_batch(self, requests: Sequence[bytes]) -> Verdicts:
        """Each item on its own merits: a verdict per item, in order. They share commits."""
        return await asyncio.gather(*(self._accept_one(body) for body in requests))

    async def _accept_one(self, body: bytes) -> Accepted | Error:
        try:
            return await self.accept(decode_request(body))
        except Error as error:
            return error

    def _row(self, request: Request, store: Store) -> Row:
        decide.check(request, self._known_types)
        notification = self._compose(request)
        key, slots = decide.line_of(notification, request.order_key, self._options.slots_per_destination)
        payload = codec.encode(notification)
        if len(payload) > MOST_PAYLOAD_BYTES:
            raise TooLarge(
                f"the notification is larger than {MOST_PAYLOAD_BYTES // 1024} KiB with its template rendered; "
                "shorten it, or keep large parts elsewhere and send a link"
            )
        try:
            codec.check_depth(payload)
        except ValueError as error:
            raise Invalid(
                f"the notification can't be kept: {error}", fields=[("metadata", f"can't be kept: {error}")]
            ) from error
        now = store.clock.now()
        # In the order of its fields: by name it takes twice as long, and every notification comes through here.
        return Row(
            store.ids.take(now),
            self._kinds[notification.notification_type],
            key,
            slots,
            None,
            PRIORITIES[request.priority or "NORMAL"],
            now if request.send_at is None else soon_enough("sendAt", request.send_at, now),
            READY,
            now,
            None if request.expires_at is None else to_millis(request.expires_at),
            None,
            None,
            1 if notification.hold else 0,
            payload,
        )

    def _compose(self, request: Request) -> Notification:
        assert request.notification_type is not None  # decide.check has seen to it
        assert request.recipient is not None
        subject, body, html = request.subject, request.body or "", request.html
        if request.template is not None:
            made = self._render(request, request.template)
            subject, body, html = subject or made.subject, made.body, made.html
        return Notification(
            request.notification_type,
            request.recipient,
            body,
            subject,
            html,
            request.metadata or {},
            hold=request.on_uncertain == "hold",
        )

    def _render(self, request: Request, template: str) -> Rendered:
        try:
            return self._templates.render(template, request.variables or {}, request.language)
        except NotFound as error:
            raise Invalid(str(error), fields=[("template", "is not known")]) from None

    async def _accept_once(self, gate: Gate, row: Row, request: Request, key: str, scope: str) -> Accepted:
        if not 0 < len(key) <= 255:
            why = "must have 1 to 255 characters"
            raise Invalid(f"Idempotency-Key {why}", fields=[("Idempotency-Key", why)])
        digest = hashlib.sha256(codec.encode(request)).hexdigest()
        mark = hashlib.sha256(f"{scope}\n{key}".encode()).hexdigest()
        once = Once(mark, digest, row, self._options.idempotency_millis)
        answer: int | Replayed | Mismatch = await gate.by_policy(row.kind, ACCEPT_ONCE, once, 1)
        if isinstance(answer, Mismatch):
            raise Conflict(
                "this Idempotency-Key was used before with another body; use a new key for a new notification"
            )
        return _accepted(answer.job if isinstance(answer, Replayed) else answer)

    # Looking

    async def get(self, identifier: UUID | str) -> View:
        store, _ = self._parts()
        job = _job_of(identifier)
        view = None if job is None else await store.read(read_view, job)
        if view is None:
            raise NotFound(f"no notification {identifier}; it was never accepted here, or its history was pruned")
        return view

    async def list(
        self,
        *,
        status: str | None = None,
        notification_type: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[View]:
        """Newest first; `before` is the last id of the page above. Large ones make it shorter than `limit`."""
        found = await self.page(status=status, notification_type=notification_type, before=before, limit=limit)
        return found.views

    async def page(
        self, *, status: str | None, notification_type: str | None, before: UUID | str | None, limit: int
    ) -> Found:
        """A list that can be continued, even where a filter left a page short."""
        if not 1 <= limit <= 500:
            raise Invalid(f"limit {limit} is out of range; use 1 to 500", fields=[("limit", "must be 1 to 500")])
        start = NEWEST if before is None else _job_of(before)
        if start is None:
            raise Invalid(
                "before is not an id of a notification",
                fields=[("before", "must be an id of a notification, as nextBefore gives it")],
            )
        store, _ = self._parts()
        kinds = ALL_KINDS if notification_type is None else (self._kind(notification_type),) * 2
        return await store.read(find_views, kinds, decide.known_status(status), start, limit)

    def _kind(self, notification_type: str) -> str:
        if notification_type not in self._known_types:
            names = ", ".join(sorted(self._known_types))
            raise Invalid(
                f"no type {notification_type!r}; there are: {names}",
                fields=[("notificationType", f"must be one of {names}")],
            )
        return self._kinds[notification_type]

    async def cancel(self, identifier: UUID | str) -> str:
        """CANCELLED at once while it waits, CANCELLING while it is being sent."""
        view = await self.get(identifier)
        store, _ = self._parts()
        verdict = await store.submit(CANCEL, view.job)
        if verdict == "finished":
            raise IllegalTransition(f"notification {identifier} is {view.status} already; there is nothing to cancel")
        return verdict.upper()

    async def resend(self, identifier: UUID | str) -> None:
        """Send a dead letter (FAILED, DEAD or HELD) again: same id, same idempotency key, fresh attempts."""
        view = await self.get(identifier)
        store, _ = self._parts()
        if not await store.submit(REDRIVE, [view.job]):
            raise IllegalTransition(
                f"notification {identifier} is {view.status}; only FAILED, DEAD or HELD can be sent again"
            )

    # The inbox of IN_APP

    async def inbox(
        self, recipient: str, *, unread_only: bool = False, before: int | None = None, limit: int = 50
    ) -> Sequence[inbox.InboxItem]:
        store, _ = self._parts()
        return await store.read(
            inbox.items, recipient, unread_only=unread_only, before=before or (1 << 62), limit=min(max(limit, 1), 500)
        )

    async def unread(self, recipient: str) -> int:
        store, _ = self._parts()
        return await store.read(inbox.unread, recipient)

    async def mark_read(self, recipient: str, identifier: UUID | str | None = None) -> int:
        store, _ = self._parts()
        job = None if identifier is None else _job_of(identifier)
        if identifier is not None and job is None:
            raise NotFound(f"no notification {identifier} in this inbox")
        return await store.write(inbox.mark_read, recipient, job)


def _accepted(job: int) -> Accepted:
    return Accepted(id=ids.to_text(job), submitted_at=to_datetime(ids.made_at(job)))


def _job_of(identifier: UUID | str) -> int | None:
    try:
        return ids.from_uuid(identifier if isinstance(identifier, UUID) else UUID(identifier))
    except ValueError:
        return None
