"""`ulak.notify`: the verbs of the room. Send, look up, list, cancel, read the inbox, manage webhook endpoints."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ulak import codec
from ulak.channels.endpoint import Endpoints, check_endpoint
from ulak.channels.message import NewMessage
from ulak.channels.ssrf import normal_url
from ulak.clock import to_datetime
from ulak.errors import Conflict, Error, IllegalTransition, Invalid, NotFound
from ulak.ids import Ids, made_at
from ulak.notify import attempts, decide, inbox
from ulak.notify.attempts import EndpointAttempt
from ulak.notify.composer import Composer
from ulak.notify.idempotency import ACCEPT_ONCE, KEEP_SIZE, BatchSize, Mismatch, Once, Replayed, find_earlier, mark_of
from ulak.notify.model import ALL_KINDS, AcceptedNotification, Request, kind_of
from ulak.notify.records import (
    NEWEST,
    FoundNotifications,
    NotificationView,
    find_letters_to,
    find_referenced,
    find_views,
    read_view,
)
from ulak.notify.reference import ACCEPT_REFERENCED, Referenced
from ulak.notify.request import check_key, decode_request, request_of
from ulak.notify.settings import NotifyOptions
from ulak.spine.job import Row
from ulak.spine.room import Host
from ulak.spine.store import Store, Tx
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.dead_letters import Filter, redrive_by
from ulak.spine.units.enqueue import ENQUEUE_ONE, Full, insert_owed
from ulak.templates.template import Rendered, Templates

Verdicts = list[AcceptedNotification | Error]


class Notify:
    def __init__(
        self,
        options: NotifyOptions,
        templates: Templates,
        known_types: frozenset[str],
        host: Host,
    ) -> None:
        self._options = options
        self._templates = templates
        self._known_types = known_types
        self._composer = Composer(options.destinations, templates, known_types)
        self._host = host

    @property
    def endpoints(self) -> Endpoints:
        endpoints: Endpoints = self._host.channels.endpoints
        return endpoints

    # Sending

    def decode(self, body: bytes) -> Request:
        """A request from JSON, as the HTTP door takes it; one Invalid names every field that is wrong."""
        return decode_request(body, self._known_types)

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
        timeout_seconds: float | None = None,
        target_meta: dict[str, Any] | None = None,
        type: str | None = None,  # noqa: A002 - the wire's own name
        payload: dict[str, Any] | None = None,
        reference: str | None = None,
        idempotency_key: str | None = None,
        wait_seconds: float | None = None,
    ) -> UUID:
        """Accept a notification durably; return its id.

        At a bound it waits as `notify.admission` says, or up to `wait_seconds`: 0 is refused at once, infinite waits.
        """
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
            timeout_seconds=timeout_seconds,
            target_meta=target_meta,
            type=type,
            payload=payload,
            reference=reference,
        )
        accepted = await self.accept(request, idempotency_key, wait_seconds=wait_seconds)
        return UUID(accepted.id)

    async def accept(
        self,
        request: Request,
        idempotency_key: str | None = None,
        scope: str = "",
        *,
        wait_seconds: float | None = None,
    ) -> AcceptedNotification:
        gate, store = self._host.loops.gate, self._host.store
        row = self._new_row(request, store)
        if idempotency_key is not None:
            check_key(idempotency_key)
            return await self._accept_once(row, request, idempotency_key, scope, wait_seconds)
        if request.reference is not None:
            await gate.by_policy(row, ACCEPT_REFERENCED, Referenced(row, request.reference), 1, wait_seconds)
        else:
            await gate.by_policy(row, ENQUEUE_ONE, row, 1, wait_seconds)
        return _accepted(store.ids, row.id)

    async def accept_batch(
        self, requests: Sequence[bytes], idempotency_key: str | None = None, scope: str = ""
    ) -> Verdicts:
        """Each item on its own merits: a verdict per item, in order. They share commits.

        With a key, each item is accepted once under that key and its place; a batch of another size is a Conflict.
        """
        if idempotency_key is not None:
            check_key(idempotency_key)
            size = BatchSize(mark_of(scope, f"{idempotency_key}\n"), len(requests), self._options.idempotency_millis)
            if not await self._host.store.submit(KEEP_SIZE, size):
                raise Conflict("this Idempotency-Key was used before with a batch of another size; use a new key")
        keys = [None if idempotency_key is None else f"{idempotency_key}\n{place}" for place in range(len(requests))]
        return await asyncio.gather(
            *(self._accept_one(body, key, scope) for body, key in zip(requests, keys, strict=True))
        )

    async def _accept_one(self, body: bytes, key: str | None, scope: str) -> AcceptedNotification | Error:
        try:
            request = self.decode(body)
            if key is None:
                return await self.accept(request)
            return await self._accept_once(self._new_row(request, self._host.store), request, key, scope)
        except Error as error:
            return error

    def post(self, tx: Tx, messages: Sequence[NewMessage]) -> list[int]:
        """Notifications of another room's transaction: it owes them, so a bound does not refuse them."""
        rows = [self._row_of(tx, message) for message in messages]
        if rows:
            insert_owed(tx, rows)
        return [row.id for row in rows]

    def check_message(self, message: NewMessage) -> None:
        """Raise Invalid for a message that `post` would not take."""
        decide.check(request_of(message), self._known_types)

    def _row_of(self, tx: Tx, message: NewMessage) -> Row:
        row = self._composer.row(request_of(message), tx.ids.take(tx.now), tx.now)
        return row._replace(continuation=message.continuation, trace=message.trace)

    def _new_row(self, request: Request, store: Store) -> Row:
        now = store.clock.now()
        return self._host.telemetry.tracer.stamped(self._composer.row(request, store.ids.take(now), now))

    def templates(self) -> dict[str, list[str]]:
        """Names of templates, each with its languages."""
        return {name: self._templates.languages(name) for name in self._templates.names}

    def preview(self, template: str, variables: Mapping[str, Any], language: str) -> Rendered:
        """A template filled in, and nothing sent."""
        return self._templates.render(template, variables, language)

    async def _accept_once(
        self, row: Row, request: Request, key: str, scope: str, wait_seconds: float | None = None
    ) -> AcceptedNotification:
        digest = hashlib.sha256(codec.encode(request)).hexdigest()
        once = Once(mark_of(scope, key), digest, row, self._options.idempotency_millis, request.reference)
        answer: int | Replayed | Mismatch | Full = await self._host.loops.gate.at_once(row, ACCEPT_ONCE, once)
        if isinstance(answer, Full):
            answer = await self._repeated_or_in_line(row, once, wait_seconds)
        if isinstance(answer, Mismatch):
            raise Conflict(
                "this Idempotency-Key was used before with another body; use a new key for a new notification"
            )
        return _accepted(self._host.store.ids, answer.job if isinstance(answer, Replayed) else answer)

    async def _repeated_or_in_line(self, row: Row, once: Once, wait_seconds: float | None) -> int | Replayed | Mismatch:
        """Others wait, or there is no capacity: a repeat needs none."""
        earlier = await self._host.store.read(find_earlier, once)
        if earlier is not None:
            return earlier
        answer: int | Replayed | Mismatch = await self._host.loops.gate.in_line(row, ACCEPT_ONCE, once, 1, wait_seconds)
        return answer

    # Looking

    async def get(self, identifier: UUID | str) -> NotificationView:
        job = self._host.store.ids.from_uuid(identifier)
        view = None if job is None else await self._host.store.read(read_view, job)
        if view is None:
            raise NotFound(f"no notification {identifier}; it was never accepted here, or its history was pruned")
        return view

    async def list(
        self,
        *,
        status: str | None = None,
        notification_type: str | None = None,
        reference: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[NotificationView]:
        """Newest first; `before` is the last id of the page above. Large ones make it shorter than `limit`."""
        found = await self.page(
            status=status, notification_type=notification_type, reference=reference, before=before, limit=limit
        )
        return found.views

    async def page(
        self,
        *,
        status: str | None,
        notification_type: str | None,
        before: UUID | str | None,
        limit: int,
        reference: str | None = None,
    ) -> FoundNotifications:
        """A list that can be continued, even where a filter left a page short."""
        if not 1 <= limit <= 500:
            raise Invalid(f"limit {limit} is out of range; use 1 to 500", fields=[("limit", "must be 1 to 500")])
        start = NEWEST if before is None else self._host.store.ids.from_uuid(before)
        if start is None:
            raise Invalid(
                "before is not an id of a notification",
                fields=[("before", "must be an id of a notification, as nextBefore gives it")],
            )
        if reference is not None:
            wanted = (notification_type, decide.known_status(status))
            return await self._host.store.read(find_referenced, reference, wanted, start, limit)
        kinds = ALL_KINDS if notification_type is None else (self._kind(notification_type),) * 2
        return await self._host.store.read(find_views, kinds, decide.known_status(status), start, limit)

    def _kind(self, notification_type: str) -> str:
        if notification_type not in self._known_types:
            names = ", ".join(sorted(self._known_types))
            raise Invalid(
                f"no type {notification_type!r}; there are: {names}",
                fields=[("notificationType", f"must be one of {names}")],
            )
        return kind_of(notification_type)

    async def cancel(self, identifier: UUID | str) -> str:
        """CANCELLED at once while it waits, CANCELLING while it is being sent."""
        view = await self.get(identifier)
        verdict = await self._host.store.submit(CANCEL, view.job)
        if verdict == "finished":
            raise IllegalTransition(f"notification {identifier} is {view.status} already; there is nothing to cancel")
        return verdict.upper()

    async def resend(self, identifier: UUID | str, *, who: str = "python") -> None:
        """Send a dead letter (FAILED, DEAD or HELD) again: same id, same idempotency key, fresh attempts."""
        view = await self.get(identifier)
        if not await self._host.store.write(redrive_by, who, [view.job]):
            raise IllegalTransition(
                f"notification {identifier} is {view.status}; only FAILED, DEAD or HELD can be sent again"
            )

    # Webhook endpoints

    async def attempts(self, url: str, *, before: int | None = None, limit: int = 50) -> Sequence[EndpointAttempt]:
        """Return the attempts at an endpoint with its answers, newest first."""
        check_endpoint(url)
        return await self._host.store.read(attempts.find, url, before or attempts.NEWEST, min(max(limit, 1), 500))

    async def attempt_rates(self) -> dict[str, tuple[int, int]]:
        """Attempts of the last day and those that failed, by endpoint."""
        since = self._host.store.clock.now() - 86_400_000
        return await self._host.store.read(attempts.rates, since)

    async def test_endpoint(self, url: str) -> AcceptedNotification:
        """Send a test event, signed as any other."""
        check_endpoint(url)
        request = Request("WEBHOOK", url, type="ulak.test", payload={"message": "This is a test event."})
        return await self.accept(request)

    async def replay(self, url: str, since: datetime, *, who: str = "python") -> int:
        """Send what failed to reach an endpoint since then again; returns how many went."""
        check_endpoint(url)
        wanted, after, number = Filter(kind=kind_of("WEBHOOK"), died_after=since), 0, 0
        while found := await self._host.store.read(find_letters_to, normal_url(url), wanted, after):
            after = found.after
            redriven = await self._host.store.write(redrive_by, who, found.jobs)
            number += len(redriven)
        return number

    # The inbox of IN_APP

    async def inbox(
        self, recipient: str, *, unread_only: bool = False, before: int | None = None, limit: int = 50
    ) -> Sequence[inbox.InboxItem]:
        return await self._host.store.read(
            inbox.items, recipient, unread_only=unread_only, before=before or (1 << 62), limit=min(max(limit, 1), 500)
        )

    async def unread(self, recipient: str) -> int:
        return await self._host.store.read(inbox.unread, recipient)

    async def mark_read(self, recipient: str, identifier: UUID | str | None = None) -> int:
        job = None if identifier is None else self._host.store.ids.from_uuid(identifier)
        if identifier is not None and job is None:
            raise NotFound(f"no notification {identifier} in this inbox")
        return await self._host.store.write(inbox.mark_read, recipient, job)


def _accepted(ids: Ids, job: int) -> AcceptedNotification:
    return AcceptedNotification(id=ids.to_text(job), submitted_at=to_datetime(made_at(job)))
