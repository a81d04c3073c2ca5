"""Notifications as observers see them: read from the spine's jobs, past and dead letters, in the room's own words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

import msgspec

from ulak import ids
from ulak.notify.model import ALL_KINDS, Notification, Status, status_of, type_of
from ulak.spine.job import Entry, Priority, Record, Word
from ulak.spine.jobs import to_record
from ulak.spine.query import Queries, Query
from ulak.spine.store import Tx

sql = Queries(__package__)

NEWEST = 1 << 62
PAGE_BYTES = 8 * 1024 * 1024  # of payloads; decoded, masked and written they need many times that
SEARCH_PAGE = 500
SEARCH_PAGES = 20
Tables = list[tuple[Query, Query]]  # what lists a table's rows, and what tells only their ids and sizes
_BURIED = frozenset({Status.FAILED, Status.DEAD, Status.HELD})
_FINISHED = frozenset({Status.DELIVERED, Status.CANCELLED, Status.EXPIRED})
# How an attempt is noted whose channel could not tell whether the message had arrived.
_UNCERTAIN = "Uncertain:"
_UNCERTAIN_ENDS = frozenset({"uncertain", "poison"})


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
    created_at: datetime
    send_at: datetime | None
    settled_at: datetime | None
    expires_at: datetime | None
    detail: Any
    timeline: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A page, newest first. `before` continues it; None at the end."""

    views: list[View]
    before: int | None


def read_view(tx: Tx, job: int) -> View | None:
    rows = _rows(tx, [query for query, _ in _tables(None)], ALL_KINDS, job, job + 1, 1)
    return _view(rows[0]) if rows else None


def find_views(tx: Tx, kinds: tuple[str, str], status: Status | None, before: int, limit: int) -> Found:
    """Newest first. Some statuses are decided here, so a filter may look through pages, but not for ever."""
    tables, found, room = _tables(status), list[View](), PAGE_BYTES
    page = limit if status is None else max(limit, SEARCH_PAGE)
    for _ in range(SEARCH_PAGES):
        rows, more = _page(tx, tables, kinds, before, page, room)
        kept = [(view, row) for view, row in zip(map(_view, rows), rows, strict=True) if status in (None, view.status)]
        found += [view for view, _ in kept]
        room -= sum(len(row[15] or b"") for _, row in kept)
        if len(found) > limit or (len(found) == limit and more):
            return Found(found[:limit], found[limit - 1].job)
        if not more:
            return Found(found, None)
        before = rows[-1][0]
        if found and (status is None or room <= 0):
            break
    return Found(found, before)


def _page(
    tx: Tx, tables: Tables, kinds: tuple[str, str], before: int, limit: int, room: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """The next rows whose payloads fit into the room, one at least, and whether there may be more after them."""
    low, high = kinds
    weighed = [row for _, weigh in tables for row in tx.all(weigh, before=before, low=low, high=high, n=limit)]
    sizes = sorted(weighed, reverse=True)[:limit]
    if not sizes:
        return [], False
    fitting = max(sum(total <= room for total in accumulate(size for _, size in sizes)), 1)
    least = sizes[fitting - 1][0]
    rows = _rows(tx, [query for query, _ in tables], kinds, least, before, fitting)
    return rows, len(sizes) == limit or fitting < len(sizes)


def _tables(status: Status | None) -> Tables:
    waiting = (sql.list_waiting, sql.weigh_waiting)
    finished, buried = (sql.list_finished, sql.weigh_finished), (sql.list_buried, sql.weigh_buried)
    if status is None:
        return [waiting, finished, buried]
    if status in _BURIED:
        return [buried]
    return [finished if status in _FINISHED else waiting]


def _rows(
    tx: Tx, tables: list[Query], kinds: tuple[str, str], least: int, before: int, limit: int
) -> list[tuple[Any, ...]]:
    low, high = kinds
    found = [row for query in tables for row in tx.all(query, least=least, before=before, low=low, high=high, n=limit)]
    return sorted(found, key=lambda row: -row[0])[:limit]


def _view(row: tuple[Any, ...]) -> View:
    record = to_record(row[:16])
    kept = _kept(record)
    waits = record.status == "deferred"
    return View(
        id=str(ids.to_uuid(record.id)),
        job=record.id,
        notification_type=type_of(record.kind),
        status=status_of(record.status, begun=len(record.timeline) > 1, error_class=row[16]),
        priority=Priority(record.priority).name,
        recipient=kept.recipient,
        subject=kept.subject,
        body=kept.body,
        metadata=kept.metadata,
        attempts=record.attempt,
        uncertain_attempts=_uncertain_attempts(record, row[16]),
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
        entry.word == Word.UNCERTAIN or _UNCERTAIN in entry.detail.get("reason", "") for entry in record.timeline
    )
    last = error_class in _UNCERTAIN_ENDS or (error_class is not None and _UNCERTAIN in str(record.detail))
    told = len(record.timeline) > 1 and record.timeline[-2].word == Word.UNCERTAIN  # a death is noted before the end
    return noted + (last and not told)


def _kept(record: Record) -> Notification:
    """A dead letter's payload may have been edited into something that is no notification."""
    try:
        return msgspec.convert(record.payload, Notification)
    except msgspec.ValidationError:
        return Notification(type_of(record.kind), "", "")
