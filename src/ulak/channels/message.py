"""A message as a room hands it to notify, in its own transaction: `host.post(tx, [NewMessage(...)])`."""

from __future__ import annotations

from typing import Any

import msgspec


class NewMessage(msgspec.Struct, frozen=True):
    """A notification to send, as a job is to be enqueued. `expires_at` is in milliseconds.

    Give `body`, or `template` with its `variables`. `continuation` is a job kind that gets the outcome.
    """

    notification_type: str
    recipient: str
    body: str | None = None
    subject: str | None = None
    template: str | None = None
    variables: dict[str, Any] | None = None
    language: str | None = None
    priority: str = "NORMAL"
    metadata: dict[str, Any] | None = None
    expires_at: int | None = None
    timeout_seconds: float | None = None
    target_meta: dict[str, Any] | None = None
    continuation: str | None = None
    trace: str | None = None  # of the request or the attempt that it comes from; that of the transaction, if left out

    def __repr__(self) -> str:
        # As in Message: who gets it and what it says must not reach a log by accident.
        return f"NewMessage({self.notification_type})"
