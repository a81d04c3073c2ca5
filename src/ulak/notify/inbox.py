"""The inbox of IN_APP notifications: a list per recipient, what is unread, and an event for whoever looks live."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ulak import codec
from ulak.clock import maybe_datetime, to_datetime
from ulak.ids import EPOCH_MILLIS
from ulak.notify.model import Notification
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

ADDED = "notify.inbox.added"
PRUNE_SLICE = 1000


@dataclass(frozen=True, slots=True)
class InboxItem:
    id: int
    subject: str | None
    body: str
    metadata: dict[str, Any]
    created_at: datetime
    delivered_at: datetime
    read_at: datetime | None


def mark_of(recipient: str) -> str:
    """How the event log names a recipient: enough to find one's own, nothing to read."""
    return hashlib.sha256(recipient.encode()).hexdigest()[:32]


def add(tx: Tx, identifier: int, created_at: int, notification: Notification) -> None:
    added = tx.execute(
        sql.add_to_inbox,
        id=identifier,
        recipient=notification.recipient,
        subject=notification.subject,
        body=notification.body,
        metadata=codec.encode_text(notification.metadata),
        created_at=created_at,
        now=tx.now,
    )
    if added:
        tx.emit(ADDED, identifier, mark_of(notification.recipient))


def _item(row: tuple[Any, ...]) -> InboxItem:
    identifier, subject, body, metadata, created, delivered, read = row
    return InboxItem(
        identifier,
        subject,
        body,
        codec.decode(metadata),
        to_datetime(created),
        to_datetime(delivered),
        maybe_datetime(read),
    )


def items(tx: Tx, recipient: str, *, unread_only: bool, before: int, limit: int) -> list[InboxItem]:
    rows = tx.rows(sql.list_inbox, recipient=recipient, unread=int(unread_only), before=before, n=limit)
    return [_item(row) for row in rows]


def item(tx: Tx, recipient: str, identifier: int) -> InboxItem | None:
    row = tx.row(sql.read_inbox, recipient=recipient, id=identifier)
    return None if row is None else _item(row)


def unread(tx: Tx, recipient: str) -> int:
    row = tx.row(sql.count_unread, recipient=recipient)
    return int(row[0]) if row else 0


def prune(tx: Tx, keep_millis: int) -> int:
    """Remove a slice of what is too old; ids are ordered by time."""
    oldest = max(tx.now - keep_millis - EPOCH_MILLIS, 0) << 22
    return tx.execute(sql.prune_inbox, before=oldest, n=PRUNE_SLICE)


def mark_read(tx: Tx, recipient: str, identifier: int | None) -> int:
    """One item, or all of them; return how many were unread before."""
    return tx.execute(sql.mark_read, recipient=recipient, id=identifier, now=tx.now)
