"""Jobs as observers see them, live, finished or dead: one, a list, or a page that is bounded by its payloads' size."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from ulak import codec
from ulak.clock import maybe_datetime, to_datetime
from ulak.spine.job import Entry, JobEvent, Priority, Record, State, Status
from ulak.spine.query import Queries, Query
from ulak.spine.store import Tx

sql = Queries("ulak.spine")

LIVE: dict[Status, int] = {"ready": 0, "deferred": 1, "running": 2, "behind": 3, "suspect": 4}
FINISHED: tuple[Status, ...] = ("done", "cancelled", "expired")
STATUSES: tuple[Status, ...] = (*LIVE, *FINISHED, "dead")
PAGE_BYTES = 8 * 1024 * 1024  # of payloads; decoded, masked and written they need many times that
STATUS_OF = {number: name for name, number in LIVE.items()}
assert set(STATUS_OF) == {int(state) for state in State}


def to_record(row: tuple[Any, ...]) -> Record:
    """From the columns of read_job.sql; a dead letter has more, its code and its error class."""
    (
        identifier,
        kind,
        status,
        key,
        prio,
        attempt,
        crashes,
        accepted_millis,
        due_millis,
        started_millis,
        settled_millis,
        expires_millis,
        unique_key,
        note,
        detail,
        payload,
        *more,
    ) = row
    word = STATUS_OF[status] if isinstance(status, int) else status
    accepted_at = to_datetime(accepted_millis)
    started_at, settled_at = maybe_datetime(started_millis), maybe_datetime(settled_millis)
    timeline = _timeline(word, accepted_at, started_at, settled_at, attempt, note, detail, more[0] if more else None)
    return Record(
        identifier,
        kind,
        word,
        key,
        Priority(prio),
        attempt,
        crashes,
        accepted_at,
        maybe_datetime(due_millis),
        started_at,
        settled_at,
        maybe_datetime(expires_millis),
        unique_key,
        None if payload is None else codec.decode(payload),
        _decoded(detail),
        timeline,
        *more,
    )


def _decoded(detail: str | None) -> Any:
    if detail is None:
        return None
    try:
        return codec.decode(detail)
    except ValueError:
        return detail


def _timeline(
    word: str,
    accepted_at: datetime,
    started_at: datetime | None,
    settled_at: datetime | None,
    attempt: int,
    note: str | None,
    detail: str | None,
    code: str | None,
) -> tuple[Entry, ...]:
    entries = [Entry(accepted_at, JobEvent.ACCEPTED, 0)]
    # Not splitlines: a reason may hold what that takes for the end of a line.
    for line in (note or "").split("\n")[:-1]:
        millis, said, number, more = codec.decode(line)
        if "started_at" in more:
            entries.append(Entry(to_datetime(more.pop("started_at")), JobEvent.STARTED, number))
        if "until" in more:
            more["until"] = to_datetime(more["until"])
        entries.append(Entry(to_datetime(millis), said, number, more))
    if started_at is not None:
        entries.append(Entry(started_at, JobEvent.STARTED, attempt))
    if settled_at is not None:
        failure = {"cause": detail, "code": code} if code else {"cause": detail}
        entries.append(Entry(settled_at, word, attempt, failure if word == JobEvent.DEAD else {}))
    return tuple(entries)


def read_record(tx: Tx, identifier: int) -> Record | None:
    for query in (sql.read_job, sql.read_past, sql.read_dead):
        row = tx.row(query, id=identifier)
        if row is not None:
            return to_record(row)
    return None


def find_traces(tx: Tx, identifiers: Collection[int]) -> dict[int, str]:
    """Of some jobs, live, finished or dead, the traces of those that have one."""
    return dict(tx.rows(sql.find_traces, ids=list(identifiers)))


def list_records(
    tx: Tx,
    kind: str | None,
    status: str | None,
    before: int,
    limit: int,
    *,
    whole: bool = True,
    key: str | None = None,
    least: int = 0,
) -> list[Record]:
    """Newest first, from below `before` down to `least`. Without a status: all, live and finished.

    If not whole, what may be large is not read at all: payload, detail and what the timeline is made of.
    """
    wanted: list[tuple[Query, dict[str, Any]]] = []
    if status is None or status in LIVE:
        wanted.append((sql.list_jobs, {"status": None if status is None else LIVE[status]}))
    if status is None or status in FINISHED:
        wanted.append((sql.list_past, {"status": status}))
    if status is None or status == "dead":
        wanted.append((sql.list_dead, {}))
    found = [
        to_record(row)
        for query, narrowed in wanted
        for row in tx.rows(query, kind=kind, before=before, least=least, key=key, n=limit, whole=whole, **narrowed)
    ]
    return sorted(found, key=lambda record: -record.id)[:limit]


class RecordPage(NamedTuple):
    """Newest first, with the bytes of each payload. `more` says whether others may follow."""

    records: list[Record]
    sizes: list[int]
    more: bool


def page_of_records(
    tx: Tx, kinds: tuple[str, str], states: Collection[str], before: int, limit: int, free_bytes: int = PAGE_BYTES
) -> RecordPage:
    """Jobs of the kinds from the first name to the last (`"notify."` to `"notify.~"`), from below an id.

    `states` are statuses; each names the table that is looked at, whole. A page ends early where its payloads would be
    more than `free_bytes`, but has one record at least.
    """
    low, high = kinds
    tables = _tables(states)
    weighed = [row for _, weigh in tables for row in tx.rows(weigh, before=before, low=low, high=high, n=limit)]
    sizes = sorted(weighed, reverse=True)[:limit]
    if not sizes:
        return RecordPage([], [], False)
    fitting = fitting_in(free_bytes, [size for _, size in sizes])
    bounds = {"least": sizes[fitting - 1][0], "before": before, "low": low, "high": high, "n": fitting}
    rows = [row for page, _ in tables for row in tx.rows(page, **bounds)]
    records = [to_record(row) for row in sorted(rows, key=lambda row: -row[0])[:fitting]]
    return RecordPage(records, [size for _, size in sizes[:fitting]], len(sizes) == limit or fitting < len(sizes))


def fitting_in(free_bytes: int, sizes: list[int]) -> int:
    """How many of the first are not too large together; one at least, or a large one would end the listing."""
    return max(sum(total <= free_bytes for total in accumulate(sizes)), min(len(sizes), 1))


def _tables(states: Collection[str]) -> list[tuple[Query, Query]]:
    """For each table its rows, and only their ids and sizes."""
    found = []
    if any(name in LIVE for name in states):
        found.append((sql.page_live, sql.weigh_live))
    if any(name in FINISHED for name in states):
        found.append((sql.page_past, sql.weigh_past))
    if "dead" in states:
        found.append((sql.page_dead, sql.weigh_dead))
    return found
