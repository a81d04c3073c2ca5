"""From a request to the job that delivers it: checked, rendered, put in line."""

from __future__ import annotations

from ulak import codec
from ulak.channels.destination import Destinations
from ulak.clock import to_millis
from ulak.errors import Invalid, NotFound, TooLarge
from ulak.notify import decide
from ulak.notify.model import PRIORITIES, Notification, Request, kind_of
from ulak.spine.job import READY, Row
from ulak.spine.validate import MAX_PAYLOAD_BYTES, soon_enough
from ulak.templates.template import Rendered, Templates


class Composer:
    def __init__(self, destinations: Destinations, templates: Templates, known_types: frozenset[str]) -> None:
        self._destinations = destinations
        self._templates = templates
        self._known_types = known_types
        self._kinds = {name: kind_of(name) for name in known_types}

    def row(self, request: Request, identifier: int, now: int) -> Row:
        """Raise Invalid for a request that can't be accepted."""
        decide.check(request, self._known_types)
        notification = self._compose(request)
        key, slots = decide.line_of(notification, request.order_key, self._destinations)
        payload = codec.encode(notification)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise TooLarge(
                f"the notification is larger than {MAX_PAYLOAD_BYTES // 1024} KiB with its template rendered; "
                "shorten it, or keep large parts elsewhere and send a link"
            )
        try:
            codec.check_depth(payload)
        except ValueError as error:
            raise Invalid(
                f"the notification can't be kept: {error}", fields=[("metadata", f"can't be kept: {error}")]
            ) from error
        # In the order of its fields: by name it takes twice as long, and every notification comes through here.
        return Row(
            identifier,
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
            decide.check_rendered(subject, body, html)
        return Notification(
            request.notification_type,
            request.recipient,
            body,
            subject,
            html,
            request.metadata or {},
            hold=request.on_uncertain == "hold",
            expires_millis=None if request.expires_at is None else to_millis(request.expires_at),
            timeout_seconds=request.timeout_seconds,
            target_meta=request.target_meta or {},
            event_type=request.type,
            data=request.payload,
            reference=request.reference,
        )

    def _render(self, request: Request, template: str) -> Rendered:
        try:
            return self._templates.render(template, request.variables or {}, request.language)
        except NotFound as error:
            raise Invalid(str(error), fields=[("template", "is not known")]) from None
