"""Notifications as observers see them: read from the spine's jobs, past and dead letters, in the room's own words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ulak import codec
from ulak.channels.ssrf import is_url, normal_url
from ulak.notify.model import KIND_PREFIX, Notification, Status, status_of, type_of
from ulak.notify.reference import find_jobs
from ulak.spine.job import Entry, JobEvent, Priority, Record
from ulak.spine.store import Tx
from ulak.spine.units.dead_letters import Filter, find_ids
from ulak.spine.units.records import FINISHED, LIVE, PAGE_BYTES, STATUSES, page_of_records, read_record

NEWEST = 1 << 62
SEARCH_PAGE = 500
SEARCH_PAGES = 20
LETTERS_PAGE = 100  # each is read whole, and a read has a deadline
_BURIED = frozenset({Status.FAILED, Status.DEAD, Status.HELD})
_FINISHED = frozenset({Status.DELIVERED, Status.CANCELLED, Status.EXPIRED})
# How an attempt is noted whose channel could not tell whether the message had arrived.
_UNCERTAIN = "Uncertain:"
_UNCERTAIN_ENDS = frozenset({"uncertain", "poison"})


@dataclass(frozen=True, slots=True)
class NotificationView:
    id: str
    job: int
    notification_type: str
    status: Status
    priority: str
    recipient: str
    subject: str | None
    body: str
    metadata: dict[str, Any]
    reference: str | None
    attempts: int
    uncertain_attempts: int
    created_at: datetime
    send_at: datetime | None
    settled_at: datetime | None
    expires_at: datetime | None
    detail: Any
    timeline: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FoundNotifications:
    """A page, newest first. `before` continues it; None at the end."""

    views: list[NotificationView]
    before: int | None


def read_view(tx: Tx, job: int) -> NotificationView | None:
    record = read_record(tx, job)
    return None if record is None or not record.kind.startswith(KIND_PREFIX) else _view(tx, record)


def find_views(tx: Tx, kinds: tuple[str, str], status: Status | None, before: int, limit: int) -> FoundNotifications:
    """Newest first. Some statuses are decided here, so a filter may look through pages, but not for ever."""
    states, found, free = _states(status), list[NotificationView](), PAGE_BYTES
    number = limit if status is None else max(limit, SEARCH_PAGE)
    for _ in range(SEARCH_PAGES):
        page = page_of_records(tx, kinds, states, before, number, free)
        views = [_view(tx, record) for record in page.records]
        found += [view for view in views if status in (None, view.status)]
        free -= sum(size for view, size in zip(views, page.sizes, strict=True) if status in (None, view.status))
        if len(found) > limit or (len(found) == limit and page.more):
            return FoundNotifications(found[:limit], found[limit - 1].job)
        if not page.more:
            return FoundNotifications(found, None)
        before = views[-1].job
        if found and (status is None or free <= 0):
            break
    return FoundNotifications(found, before)


def find_referenced(
    tx: Tx, reference: str, wanted: tuple[str | None, Status | None], before: int, limit: int
) -> FoundNotifications:
    """Those of a reference, newest first."""
    found, free = list[NotificationView](), PAGE_BYTES
    jobs = find_jobs(tx, reference, before, limit)
    for job in jobs:
        record = read_record(tx, job)
        if record is not None and _fits(view := _view(tx, record), *wanted):
            free -= len(codec.encode(record.payload))
            if found and free < 0:
                return FoundNotifications(found, before)
            found.append(view)
        before = job
    return FoundNotifications(found, before if len(jobs) == limit else None)


def _fits(view: NotificationView, notification_type: str | None, status: Status | None) -> bool:
    return notification_type in (None, view.notification_type) and status in (None, view.status)


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters to one endpoint out of a page of all; `after` continues."""

    jobs: list[int]
    after: int


def find_letters_to(tx: Tx, url: str, wanted: Filter, after: int) -> Letters | None:
    ids = find_ids(tx, wanted, after, LETTERS_PAGE)
    if not ids:
        return None
    return Letters([job for job in ids if _leads_to(url, read_view(tx, job))], ids[-1])


def _leads_to(url: str, view: NotificationView | None) -> bool:
    return view is not None and is_url(view.recipient) and normal_url(view.recipient) == url


def _states(status: Status | None) -> Collection[str]:
    if status is None:
        return STATUSES
    if status in _BURIED:
        return ("dead",)
    return FINISHED if status in _FINISHED else LIVE


def _view(tx: Tx, record: Record) -> NotificationView:
    kept = _kept(record)
    waits = record.status == "deferred"
    return NotificationView(
        id=tx.ids.to_text(record.id),
        job=record.id,
        notification_type=type_of(record.kind),
        status=status_of(record.status, begun=len(record.timeline) > 1, error_class=record.error_class),
        priority=Priority(record.priority).name,
        recipient=kept.recipient,
        subject=kept.subject,
        body=kept.body,
        metadata=kept.metadata,
        reference=kept.reference,
        attempts=record.attempt,
        uncertain_attempts=_uncertain_attempts(record, record.error_class),
        created_at=record.accepted_at,
        send_at=record.due_at if waits else None,
        settled_at=record.settled_at,
        expires_at=record.expires_at,
        detail=record.detail,
        timeline=record.timeline,
    )


def _uncertain_attempts(record: Record, error_class: str | None) -> int:
    """At how many attempts it may have arrived: the process died, or the channel could not tell."""
    noted = sum(
        entry.word == JobEvent.UNCERTAIN or _UNCERTAIN in entry.detail.get("reason", "") for entry in record.timeline
    )
    last = error_class in _UNCERTAIN_ENDS or (error_class is not None and _UNCERTAIN in str(record.detail))
    # A death is noted before the end.
    told = len(record.timeline) > 1 and record.timeline[-2].word == JobEvent.UNCERTAIN
    return noted + (last and not told)


def _kept(record: Record) -> Notification:
    """A dead letter's payload may have been edited into something that is not a notification."""
    try:
        return msgspec.convert(record.payload, Notification)
    except msgspec.ValidationError:
        return Notification(type_of(record.kind), "", "")
