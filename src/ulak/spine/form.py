"""From what a caller says to a row: checks and bounds on new jobs, before they reach the store."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ulak import codec
from ulak.clock import to_millis
from ulak.errors import Invalid
from ulak.ids import Ids
from ulak.spine.job import READY, NewJob, Row

MOST_PAYLOAD_BYTES = 1_048_576
MOST_TEXT = 200
MOST_SLOTS = 1000
MOST_JOBS = 10_000


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
    return Row(
        identifier,
        job.kind,
        job.key,
        job.slots,
        None,
        int(job.priority),
        due_at,
        READY,
        now,
        None if job.expires_at is None else to_millis(job.expires_at),
        job.unique_key,
        job.continuation,
        1 if job.on_uncertain == "hold" else 0,
        _payload(job),
    )


def _check(job: NewJob) -> None:
    _check_text(job, "kind", job.kind)
    _check_text(job, "key", job.key)
    _check_text(job, "unique_key", job.unique_key)
    _check_text(job, "continuation", job.continuation)
    if not 1 <= job.slots <= MOST_SLOTS:
        raise Invalid(
            f"slots of a {job.kind} job must be 1 to {MOST_SLOTS}, not {job.slots}", fields=[("slots", "range")]
        )
    if job.delay_seconds is not None and (job.due_at is not None or job.delay_seconds < 0):
        raise Invalid("give either delay_seconds (0 or more) or due_at", fields=[("delay_seconds", "choice")])


def _check_text(job: NewJob, name: str, text: str | None) -> None:
    if text is not None and (not 0 < len(text) <= MOST_TEXT or "\x00" in text):
        raise Invalid(
            f"{name} of a {job.kind[:50]!r} job must have 1 to {MOST_TEXT} characters and no NUL",
            fields=[(name, "length")],
        )


def _due_at(job: NewJob, now: int) -> int:
    if job.due_at is not None:
        return to_millis(job.due_at)
    return now if job.delay_seconds is None else now + round(job.delay_seconds * 1000)


def _payload(job: NewJob) -> bytes:
    try:
        payload = codec.encode(job.payload)
    except (TypeError, msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Invalid(
            f"the payload of a {job.kind} job can't be written as JSON: {error}", fields=[("payload", "json")]
        ) from error
    if len(payload) > MOST_PAYLOAD_BYTES:
        raise Invalid(
            f"the payload of a {job.kind} job has {len(payload)} bytes; at most {MOST_PAYLOAD_BYTES} are taken: "
            "store it elsewhere and send where it is",
            fields=[("payload", "size")],
        )
    return payload
