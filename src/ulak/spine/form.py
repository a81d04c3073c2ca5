"""From what a caller says to a row: checks and bounds on new jobs, before they reach the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import msgspec

from ulak import codec
from ulak.clock import given_millis
from ulak.errors import Invalid, TooLarge
from ulak.ids import Ids
from ulak.spine.job import MOST_KIND, READY, NewJob, Priority, Row

MOST_PAYLOAD_BYTES = 1_048_576
MOST_TEXT = 200
MOST_SLOTS = 1000
MOST_JOBS = 10_000
MOST_DELAY_SECONDS = 10 * 365 * 86_400
_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)  # Row(...) itself would take twice as long
_LEVELS = frozenset(int(level) for level in Priority)


def to_rows(jobs: Iterable[NewJob], ids: Ids, now: int) -> list[Row]:
    forms = list(jobs)
    if len(forms) > MOST_JOBS:
        raise Invalid(f"{len(forms)} jobs at once are too many; send at most {MOST_JOBS}")
    numbers = ids.take_many(now, len(forms))
    return [_to_row(job, number, now) for job, number in zip(forms, numbers, strict=True)]


def to_row(job: NewJob, ids: Ids, now: int) -> Row:
    return _to_row(job, ids.take(now), now)


def _to_row(job: NewJob, identifier: int, now: int) -> Row:
    _check(job)
    due_at = now if job.delay_seconds is None and job.due_at is None else _due_at(job, now)
    return _row(
        (
            identifier,
            job.kind,
            job.key,
            job.slots,
            None,
            +job.priority,  # the plain number
            due_at,
            READY,
            now,
            None if job.expires_at is None else given_millis("expires_at", job.expires_at),
            job.unique_key,
            job.continuation,
            1 if job.on_uncertain == "hold" else 0,
            _payload(job),
        )
    )


def _check(job: NewJob) -> None:
    if not _is_good(job.kind):
        raise _bad_text(job, "kind", MOST_KIND)
    if job.key is not None and not _is_text(job.key):
        raise _bad_text(job, "key")
    if job.unique_key is not None and not _is_text(job.unique_key):
        raise _bad_text(job, "unique_key")
    if job.continuation is not None and not _is_good(job.continuation):
        raise _bad_text(job, "continuation", MOST_KIND)
    if not 1 <= job.slots <= MOST_SLOTS:
        raise Invalid(
            f"slots of a {job.kind} job must be 1 to {MOST_SLOTS}, not {job.slots}", fields=[("slots", "range")]
        )
    if job.priority not in _LEVELS:
        raise Invalid(
            f"priority of a {job.kind} job must be one of 0 to 3, not {job.priority}", fields=[("priority", "choice")]
        )
    if job.delay_seconds is not None and (job.due_at is not None or not 0 <= job.delay_seconds <= MOST_DELAY_SECONDS):
        raise Invalid("give either delay_seconds (0 to ten years) or due_at", fields=[("delay_seconds", "choice")])


def _bad_text(job: NewJob, name: str, most: int = MOST_TEXT) -> Invalid:
    return Invalid(
        f"{name} of a {job.kind[:50]!r} job must have 1 to {most} characters, no NUL and no lone surrogate",
        fields=[(name, "length")],
    )


def _is_text(text: str) -> bool:
    """No database takes a lone surrogate, and PostgreSQL no NUL."""
    if not 0 < len(text) <= MOST_TEXT:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


@lru_cache(maxsize=4096)
def _is_good(kind: str) -> bool:
    """There are few kinds, and each is looked at once."""
    return len(kind) <= MOST_KIND and _is_text(kind)


def _due_at(job: NewJob, now: int) -> int:
    if job.due_at is not None:
        return given_millis("due_at", job.due_at)
    return now if job.delay_seconds is None else now + round(job.delay_seconds * 1000)


def _payload(job: NewJob) -> bytes:
    try:
        payload = codec.encode(job.payload)
    except (TypeError, msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Invalid(
            f"the payload of a {job.kind} job can't be written as JSON: {error}", fields=[("payload", "json")]
        ) from error
    if len(payload) > MOST_PAYLOAD_BYTES:
        raise TooLarge(
            f"the payload of a {job.kind} job is larger than {MOST_PAYLOAD_BYTES // 1024} KiB; "
            "store it elsewhere and send where it is",
            fields=[("payload", "size")],
        )
    return payload
