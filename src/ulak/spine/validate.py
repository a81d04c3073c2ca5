"""Turns a caller's arguments into a row: checks and bounds on new jobs, before they reach the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, get_args

import msgspec

from ulak import codec
from ulak.clock import given_millis
from ulak.codec import SHORT
from ulak.errors import Invalid, TooLarge
from ulak.ids import Ids
from ulak.spine.job import MAX_KIND, READY, NewJob, OnUncertain, Priority, Row

MAX_PAYLOAD_BYTES = 1_048_576
MAX_TEXT = 200
MAX_SLOTS = 1000
MAX_JOBS = 10_000
MAX_DELAY_SECONDS = 10 * 365 * 86_400
_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)  # Row(...) itself would take twice as long
_LEVELS = frozenset(int(level) for level in Priority)
_HOLDS: dict[str, int] = {"resend": 0, "hold": 1}
assert set(_HOLDS) == set(get_args(OnUncertain))
_TYPES = {
    "kind": str,
    "key": str | None,
    "unique_key": str | None,
    "continuation": str | None,
    "priority": int,
    "delay_seconds": float | int | None,
    "on_uncertain": str,
}


def to_rows(jobs: Iterable[NewJob], ids: Ids, now: int) -> list[Row]:
    try:
        forms = list(jobs)
    except TypeError as error:
        raise Invalid(f"{jobs!r:.50} is not a list of jobs; give [NewJob(kind, payload), …]") from error
    if len(forms) > MAX_JOBS:
        raise Invalid(f"{len(forms)} jobs at once are too many; send at most {MAX_JOBS}")
    numbers = ids.take_many(now, len(forms))
    return [to_row(job, number, now) for job, number in zip(forms, numbers, strict=True)]


def to_row(job: NewJob, identifier: int, now: int) -> Row:
    try:
        _check(job)
    except (TypeError, AttributeError) as error:
        raise _wrong_type(job) from error
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
            _HOLDS[job.on_uncertain],
            to_json(job.payload, job.kind),
            None,  # its trace, which the code that accepts it knows
        )
    )


def _check(job: NewJob) -> None:
    if not is_kind(job.kind):
        raise _bad_text(job, "kind", MAX_KIND)
    if job.key is not None and not is_text(job.key):
        raise _bad_text(job, "key")
    if job.unique_key is not None and not is_text(job.unique_key):
        raise _bad_text(job, "unique_key")
    if job.continuation is not None and not is_kind(job.continuation):
        raise _bad_text(job, "continuation", MAX_KIND)
    if job.slots != 1 and not is_whole(job.slots, 1, MAX_SLOTS):
        raise Invalid(
            f"slots of a {job.kind} job must be a whole number, 1 to {MAX_SLOTS}, not {job.slots!r:.50}",
            fields=[("slots", f"must be a whole number, 1 to {MAX_SLOTS}")],
        )
    if job.priority not in _LEVELS:
        raise Invalid(
            f"priority of a {job.kind} job must be one of 0 to 3, not {job.priority!r:.50}",
            fields=[("priority", "must be one of 0 to 3")],
        )
    if job.delay_seconds is not None and (job.due_at is not None or not 0 <= job.delay_seconds <= MAX_DELAY_SECONDS):
        raise Invalid(
            f"delay_seconds of a {job.kind} job must be 0 to ten years, and due_at is instead of it; "
            f"given: {job.delay_seconds!r:.50}",
            fields=[("delay_seconds", "must be 0 to ten years of seconds, and not be given beside a due time")],
        )
    if job.on_uncertain not in _HOLDS:
        raise Invalid(
            f"on_uncertain of a {job.kind} job must be one of {', '.join(_HOLDS)}, not {job.on_uncertain!r:.50}",
            fields=[("on_uncertain", f"must be one of {', '.join(_HOLDS)}")],
        )


def _wrong_type(job: object) -> Invalid:
    """Found out when something has failed already, so that the usual job is not asked for its types."""
    if not isinstance(job, NewJob):
        return Invalid(f"{job!r:.50} is not a job; give NewJob(kind, payload)")
    name = next((name for name, types in _TYPES.items() if not isinstance(getattr(job, name), types)), "job")
    wanted = "a number" if name in {"delay_seconds", "priority"} else "text"
    return Invalid(
        f"{name} of a job must be {wanted}, not {getattr(job, name, job)!r:.50}", fields=[(name, f"must be {wanted}")]
    )


def _bad_text(job: NewJob, name: str, most: int = MAX_TEXT) -> Invalid:
    return Invalid(
        f"{name} of a {job.kind[:50]!r} job must have 1 to {most} characters, no NUL and no lone surrogate",
        fields=[(name, f"must have 1 to {most} characters, no NUL and no lone surrogate")],
    )


def is_number(value: object, least: float = 0.0) -> bool:
    return isinstance(value, float | int) and value >= least  # which NaN is not


def is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and least <= value <= most


def is_text(text: object) -> bool:
    """No database takes a lone surrogate, and PostgreSQL no NUL."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


@lru_cache(maxsize=4096)
def is_kind(kind: object) -> bool:
    """There are few kinds, and each is looked at once."""
    return isinstance(kind, str) and len(kind) <= MAX_KIND and is_text(kind)


def _due_at(job: NewJob, now: int) -> int:
    if job.due_at is None:
        return now if job.delay_seconds is None else now + round(job.delay_seconds * 1000)
    return soon_enough("due_at", job.due_at, now)


def soon_enough(name: str, instant: datetime, now: int) -> int:
    """When to begin, at most ten years from now: times far beyond are those of jobs that are held after a restore.

    What was due before 1970 is due since then: a hold is added to the due time and must be seen in the sum.
    """
    due_at = given_millis(name, instant)
    if due_at > now + MAX_DELAY_SECONDS * 1000:
        raise Invalid(
            f"{name} must be at most ten years from now; given: {instant.isoformat()}",
            fields=[(name, "must be at most ten years from now")],
        )
    return max(due_at, 0)


def to_json(value: Any, whose: str, what: str = "payload") -> bytes:
    """As it is kept: within the bounds, and the same when it is read again."""
    try:
        payload = codec.encode(value)
        if value is not None and (len(payload) > SHORT or payload.find(b"null") >= 0):  # `in` takes twice as long
            codec.check(value, payload)
    except (TypeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(
            f"the {what} of {whose} can't be written as JSON: {error}",
            fields=[(what, f"can't be written as JSON: {error}")],
        ) from error
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise TooLarge(
            f"the {what} of {whose} is larger than {MAX_PAYLOAD_BYTES // 1024} KiB; "
            "store it elsewhere and send where it is",
            fields=[(what, f"must be at most {MAX_PAYLOAD_BYTES // 1024} KiB")],
        )
    return payload
