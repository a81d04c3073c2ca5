"""The seam between a notification and whoever carries it: one message in; out comes a receipt, or a failure.

Only the shape belongs here; the carriers are the other modules of this folder and the plug-ins.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

from ulak.clock import to_datetime
from ulak.errors import Permanent, Transient


class NotificationType(StrEnum):
    """The types that Ulak knows by itself. A plug-in may answer to any other string."""

    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"
    IN_APP = "IN_APP"
    WEBHOOK = "WEBHOOK"


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One notification on its way to one recipient. `idempotency_key` stays the same over all attempts."""

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

    @property
    def created_at(self) -> datetime:
        """When the notification was accepted."""
        return to_datetime(self.created_millis)

    def __repr__(self) -> str:
        # A message ends up in tracebacks and logs: who gets it and what it says must not.
        return f"Message(id={self.id!r}, notification_type={self.notification_type!r}, attempt={self.attempt})"


class Receipt(msgspec.Struct, frozen=True):
    """The other side's yes. `provider_id` is how the other side names the message, if it does."""

    provider_id: str | None = None
    detail: dict[str, Any] = {}


class Uncertain(Transient):
    """The line broke after the message was handed over: it may have been accepted."""


class EndpointGone(Permanent):
    """The endpoint answered 410 Gone: it wants no more messages."""


@runtime_checkable
class Channel(Protocol):
    """What carries messages of some types.

    `handle` returns a receipt, or raises Transient (`Uncertain` when the message may have arrived), Throttled or
    Permanent (`EndpointGone` when the recipient should be switched off). Any other exception counts as transient.
    """

    @property
    def name(self) -> str: ...

    def can_handle(self, notification_type: str) -> bool: ...

    async def handle(self, message: Message) -> Receipt: ...

    async def close(self) -> None: ...
