"""A notification on the wire and in the store, its states, and the words for them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ulak.spine.job import Priority

PRIORITIES = {level.name: int(level) for level in Priority}
KIND_PREFIX = "notify."
ALL_KINDS = (KIND_PREFIX, KIND_PREFIX + "~")  # from, to: the order of letters puts every type in between


# Everything is optional for the decoder, so that one answer can name every field that is wrong.
class Request(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A notification to send."""

    notification_type: Annotated[
        str | None, Meta(description="EMAIL, SMS, PUSH, IN_APP, WEBHOOK, WHATSAPP or SLACK. Needed.")
    ] = None
    recipient: Annotated[
        str | None, Meta(description="Whom it is for: an address, a number, a device, a name or a URL. Needed.")
    ] = None
    subject: Annotated[str | None, Meta(description="At most 998 characters.")] = None
    body: Annotated[str | None, Meta(description="The text. Needed, unless a template is given.")] = None
    html: Annotated[str | None, Meta(description="The same as HTML, for EMAIL.")] = None
    priority: Annotated[str | None, Meta(description="URGENT, HIGH, NORMAL (if left out) or LOW.")] = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Kept and shown with it; yours.")] = None
    expires_at: Annotated[datetime | None, Meta(description="Not sent any more after this; with a time zone.")] = None
    send_at: Annotated[datetime | None, Meta(description="Not sent before this; with a time zone.")] = None
    order_key: Annotated[
        str | None, Meta(description="Notifications with the same key are sent one at a time, in order.")
    ] = None
    on_uncertain: Annotated[
        str | None,
        Meta(description="When an attempt was cut off and may have arrived: resend (if left out), or hold for you."),
    ] = None
    template: Annotated[str | None, Meta(description="The name of a template, instead of body and html.")] = None
    variables: Annotated[dict[str, Any] | None, Meta(description="What the template asks for.")] = None
    language: Annotated[str | None, Meta(description="Of the template: tr or en.")] = None
    type: Annotated[str | None, Meta(description="Of a WEBHOOK: the event's type, like order.shipped.")] = None
    payload: Annotated[
        dict[str, Any] | None,
        Meta(description="Of a WEBHOOK: your own JSON, posted as `data` beside its type."),
    ] = None
    reference: Annotated[str | None, Meta(description="Your own name for it, to find it by.")] = None
    timeout_seconds: Annotated[
        float | None, Meta(description="Longest time for one attempt; the channel's own limit if left out or longer.")
    ] = None
    target_meta: Annotated[
        dict[str, Any] | None,
        Meta(description="About the recipient's address: a browser's keys, a webhook's headers, a WhatsApp template."),
    ] = None


class Notification(msgspec.Struct, rename="camel", omit_defaults=True):
    """A notification as it is kept: the payload of its job."""

    notification_type: str
    recipient: str
    body: str
    subject: str | None = None
    html: str | None = None
    metadata: dict[str, Any] = {}
    hold: bool = False
    event_type: str | None = None
    data: dict[str, Any] | None = None
    expires_millis: int | None = None
    timeout_seconds: float | None = None
    target_meta: dict[str, Any] = {}
    reference: str | None = None

    def __repr__(self) -> str:
        # Who gets it and what it says must not reach a log by accident.
        return f"Notification({self.notification_type})"


class AcceptedNotification(msgspec.Struct, rename="camel", kw_only=True):
    """The answer to an accepted notification."""

    id: str
    status: str = "ACCEPTED"
    message: str = "Notification submitted for processing"
    submitted_at: datetime


class Status(StrEnum):
    """Where a notification stands, as people are told."""

    SCHEDULED = "SCHEDULED"
    WAITING = "WAITING"
    SENDING = "SENDING"
    RETRYING = "RETRYING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"
    DEAD = "DEAD"
    HELD = "HELD"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"


_FINISHED = {"done": Status.DELIVERED, "cancelled": Status.CANCELLED, "expired": Status.EXPIRED}
_DEAD = {"permanent": Status.FAILED, "uncertain": Status.HELD}


def status_of(job_status: str, *, begun: bool, error_class: str | None) -> Status:
    """A job's status in the room's own words. `begun` tells a retry from a first time that is still to come."""
    if job_status == "dead":
        return _DEAD.get(error_class or "", Status.DEAD)
    if job_status == "running":
        return Status.SENDING
    if job_status == "deferred":
        return Status.RETRYING if begun else Status.SCHEDULED
    return _FINISHED.get(job_status, Status.WAITING)


def kind_of(notification_type: str) -> str:
    """Each type is a job kind, so that a slow channel holds up no other."""
    return KIND_PREFIX + notification_type.lower()


def type_of(kind: str) -> str:
    return kind.removeprefix(KIND_PREFIX).upper()
