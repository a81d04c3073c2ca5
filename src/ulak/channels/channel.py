"""The seam between a notification and whoever carries it: one message in; out comes a receipt, or a failure.

Only the shape belongs here; the carriers are the other modules of this folder and the plug-ins.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

from ulak.clock import to_datetime
from ulak.errors import Permanent, Transient

_MIN_SECONDS = 0.001  # to HTTP clients, 0 means no limit


class NotificationType(StrEnum):
    """The types that Ulak knows by itself. A plug-in may answer to any other string."""

    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"
    IN_APP = "IN_APP"
    WEBHOOK = "WEBHOOK"
    WHATSAPP = "WHATSAPP"
    SLACK = "SLACK"


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One notification on its way to one recipient. `idempotency_key` stays the same over all attempts.

    `target_meta` is what is known of the recipient's address beside the address itself: keys of a browser's
    subscription, headers of a webhook, a template. `event_type` and `data` are a webhook's own event.
    `began_millis` is when this attempt began, by the store's clock.
    """

    id: str
    notification_type: str
    recipient: str
    body: str
    created_millis: int  # one is made for every delivery, and few channels ask for the time
    idempotency_key: str
    subject: str | None = None
    html: str | None = None
    priority: str = "NORMAL"
    metadata: dict[str, Any] = {}
    attempt: int = 1
    expires_millis: int | None = None
    began_millis: int = 0
    timeout_seconds: float | None = None
    target_meta: dict[str, Any] = {}
    event_type: str | None = None
    data: dict[str, Any] | None = None
    trace: str | None = None  # of this attempt; `ulak.spine.trace.headers_of` makes headers of it

    @property
    def created_at(self) -> datetime:
        """When the notification was accepted."""
        return to_datetime(self.created_millis)

    @property
    def seconds_left(self) -> float | None:
        """From the beginning of this attempt to the message's expiry; None when it does not expire."""
        return None if self.expires_millis is None else (self.expires_millis - self.began_millis) / 1000

    def __repr__(self) -> str:
        # A message ends up in tracebacks and logs: who gets it and what it says must not.
        return f"Message(id={self.id!r}, notification_type={self.notification_type!r}, attempt={self.attempt})"


class Receipt(msgspec.Struct, frozen=True):
    """The other side's yes. `provider_id` is `<provider>:<id>`, the name that the other side has for the message."""

    provider_id: str | None = None
    detail: dict[str, Any] = {}


class Uncertain(Transient):
    """The line broke after the message was handed over: it may have been accepted."""


class RecipientGone(Permanent):
    """Nobody is reached at this address any more: take it out of use."""


class EndpointGone(RecipientGone):
    """The endpoint answered 410 Gone: it wants no more messages."""


@runtime_checkable
class Channel(Protocol):
    """A carrier of messages of some types.

    `handle` returns a receipt, or raises Transient (`Uncertain` when the message may have arrived), Throttled or
    Permanent (`RecipientGone` when the address should be taken out of use), each with a `code`. Any other exception
    counts as transient. After a message's expiry nothing is sent, and no delivery takes longer than the message allows.
    """

    @property
    def name(self) -> str: ...

    def can_handle(self, notification_type: str) -> bool: ...

    async def handle(self, message: Message) -> Receipt: ...

    async def close(self) -> None: ...


class TimeLeft:
    """The time of one delivery, for those that take more than one request."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._ends_at = self._clock() + seconds

    def seconds(self) -> float:
        return max(self._ends_at - self._clock(), _MIN_SECONDS)


def seconds_for(message: Message, usual: float, provider: str) -> float:
    """How long this delivery may take: the channel's own limit, or less if the message says so or ends before it."""
    left = message.seconds_left
    if left is not None and left <= 0:
        why = "The message expired before it was sent; nothing was sent."
        raise Permanent(why, code=f"{provider}_EXPIRED", unsent=True)
    return min(usual, *(limit for limit in (message.timeout_seconds, left) if limit is not None), usual)
