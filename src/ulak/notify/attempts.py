"""Attempts by webhook endpoint: when each was, what the receiver answered, and how long that took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ulak.channels.ssrf import normal_url
from ulak.clock import to_datetime
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue

sql = Queries(__package__)

PRUNE_SLICE = 1000
NEWEST = 1 << 62


@dataclass(frozen=True, slots=True)
class NewAttempt:
    url: str
    job: int
    number: int
    millis: int
    status: int | None
    code: str | None


@dataclass(frozen=True, slots=True)
class EndpointAttempt:
    """`status` is the receiver's answer; without one, `code` says what happened."""

    job: int
    number: int
    at: datetime
    milliseconds: int
    status: int | None
    code: str | None
    sequence: int


def _record(tx: Tx, items: list[NewAttempt]) -> list[None]:
    rows = [
        (tx.ids.take(tx.now), normal_url(one.url), one.job, one.number, tx.now, one.millis, one.status, one.code)
        for one in items
    ]
    tx.insert_rows(sql.keep_attempts, rows)
    return [None] * len(items)


RECORD_ATTEMPT: Verb[NewAttempt, None] = Verb(WriterQueue.UNIT, _record)


def rates(tx: Tx, since: int) -> dict[str, tuple[int, int]]:
    """Attempts, and those that failed, by endpoint."""
    return {url: (attempts, failed) for url, attempts, failed in tx.rows(sql.count_attempts, since=since)}


def find(tx: Tx, url: str, before: int, limit: int) -> list[EndpointAttempt]:
    """Newest first."""
    rows = tx.rows(sql.list_attempts, url=normal_url(url), before=before, n=limit)
    return [
        EndpointAttempt(job, number, to_datetime(at), millis, status, code, sequence)
        for sequence, job, number, at, millis, status, code in rows
    ]


def prune(tx: Tx, keep_millis: int) -> int:
    return tx.execute(sql.prune_attempts, before=tx.now - keep_millis, n=PRUNE_SLICE)
