"""Notifications as observers see them: read from the spine's jobs, past and dead letters, in the room's own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ulak import ids
from ulak.notify.model import Notification, Status, status_of, type_of
from ulak.spine.job import Entry, Priority
from ulak.spine.jobs import to_record
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)


@dataclass(frozen=True, slots=True)
class View:
    id: str
    job: int
    notification_type: str
    status: Status
    priority: str
    recipient: str
    subject: str | None
    body: str
    metadata: dict[str, Any]
    attempts: int
    uncertain_attempts: int
    created_at: int
    send_at: int | None
    settled_at: int | None
    expires_at: int | None
    detail: Any
    timeline: tuple[Entry, ...]


def read_view(tx: Tx, job: int) -> View | None:
    rows = tx.all(sql.read_notification, id=job)
    return _view(rows[0]) if rows else None


def list_views(tx: Tx, kinds: list[str], status: str | None, before: int | None, limit: int) -> list[View]:
    """Newest first. Statuses are decided here, so a filter may have to look through pages; at most 20 of them."""
    found: list[View] = []
    start = (1 << 62) if before is None else before
    for _ in range(20):
        rows = tx.all(sql.list_notifications, kinds=kinds, before=start, n=limit)
        found += [view for view in map(_view, rows) if status is None or view.status == status]
        if len(rows) < limit or len(found) >= limit:
            break
        start = rows[-1][0]
    return found[:limit]


def _view(row: tuple[Any, ...]) -> View:
    record = to_record(row[:16])
    kept = msgspec.convert(record.payload, Notification)
    return View(
        id=str(ids.to_uuid(record.id)),
        job=record.id,
        notification_type=type_of(record.kind),
        status=status_of(record.status, record.attempt, row[16]),
        priority=Priority(record.priority).name,
        recipient=kept.recipient,
        subject=kept.subject,
        body=kept.body,
        metadata=kept.metadata,
        attempts=record.attempt,
        uncertain_attempts=record.crashes,
        created_at=record.accepted_at,
        send_at=record.due_at if record.status == "deferred" else None,
        settled_at=record.settled_at,
        expires_at=record.expires_at,
        detail=record.detail,
        timeline=record.timeline,
    )
