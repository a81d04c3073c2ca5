"""Forms of the wire: camelCase names, ids as strings, instants as text, payloads masked unless they may be seen."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.complaint import INSTANT
from ulak.errors import NotFound
from ulak.masking import mask_text, mask_value
from ulak.spine.event import EventRecord
from ulak.spine.job import Entry, Record
from ulak.spine.jobs import MAX_ID
from ulak.spine.trace import trace_id_of
from ulak.spine.units import audit

# 63-bit numbers do not survive JavaScript, so ids travel as text.
Id = Annotated[str, Path(pattern=r"^[0-9]{1,19}$", description="The job's id.", examples=["869712345678901248"])]
# Where a UUID is taken as well: a notification's id, or what a receiver saw.
AnyId = Annotated[
    str,
    Path(
        pattern=r"^([0-9]{1,19}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$",
        description="The job's id, or its UUID.",
        examples=["869712345678901248"],
    ),
]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,19}$", examples=["869712345678901248"])]


def _not_a_number(value: object) -> object:
    """pydantic would take 0.5 for half a second after 1970."""
    if isinstance(value, datetime) or (isinstance(value, str) and ":" in value):
        return value
    raise ValueError(INSTANT)


Instant = Annotated[AwareDatetime, BeforeValidator(_not_a_number)]
Reveal = Annotated[bool, Query(description="Show payloads as they are; needs the scope `reveal`.")]


class View(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", serialize_by_alias=True
    )


class EntryView(View):
    """One step of a job's life."""

    at: datetime
    word: str
    attempt: int
    detail: dict[str, Any]


class JobView(View):
    id: str
    kind: str
    status: str
    key: str | None
    priority: str
    attempt: int
    crashes: int
    accepted_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    settled_at: datetime | None
    expires_at: datetime | None
    unique_key: str | None


class JobDetail(JobView):
    """A job with its payload, its result or cause, and everything that happened to it.

    `uuid` is its id as rooms and receivers see it: a notification's id, a webhook's. `traceId` is that of the trace it
    belongs to, where `telemetry.traces` was on when it was accepted.
    """

    uuid: str
    trace_id: str | None
    payload: Any
    detail: Any
    timeline: list[EntryView]


class DeadView(JobView):
    error_class: str
    code: str | None
    cause: str
    payload: Any


class EventView(View):
    """`seq` is the cursor: read on from it and nothing is missed or seen twice."""

    seq: int
    at: datetime
    name: str
    job: str | None
    kind: str
    data: Any


def number(identifier: str, what: str = "job") -> int:
    """An id from the wire. One that is too large was never ours."""
    found = int(identifier)
    if found > MAX_ID:
        raise NotFound(f"no {what} {identifier}")
    return found


def cursor(text: str | None) -> int | None:
    return None if text is None else min(int(text), MAX_ID)


def may_reveal(caller: Caller, *, reveal: bool) -> bool:
    """For routes whose room keeps its own line of who saw what."""
    if reveal:
        caller.need("reveal")
    return reveal


async def revealed(ulak: Ulak, caller: Caller, what: str, *, reveal: bool) -> bool:
    """Whether a caller is shown what is masked. The caller needs the scope, and the audit log keeps who saw what."""
    if may_reveal(caller, reveal=reveal):
        await ulak.store.write(audit.record, caller.name, "payload.reveal", what)
    return reveal


def payload_view(payload: Any, *, reveal: bool) -> Any:
    return payload if reveal else mask_value("", payload)


def _fields(record: Record, *, reveal: bool) -> dict[str, Any]:
    text = str if reveal else mask_text
    return {
        "id": str(record.id),
        "kind": record.kind,
        "status": record.status,
        "key": None if record.key is None else text(record.key),
        "priority": record.priority.name,
        "attempt": record.attempt,
        "crashes": record.crashes,
        "unique_key": None if record.unique_key is None else text(record.unique_key),
        "accepted_at": record.accepted_at,
        "due_at": record.due_at,
        "started_at": record.started_at,
        "settled_at": record.settled_at,
        "expires_at": record.expires_at,
    }


def job_view(record: Record) -> JobView:
    return JobView(**_fields(record, reveal=False))


def job_detail(record: Record, uuid: str, *, reveal: bool) -> JobDetail:
    return JobDetail(
        uuid=uuid,
        trace_id=trace_id_of(record.trace),
        **_fields(record, reveal=reveal),
        payload=payload_view(record.payload, reveal=reveal),
        detail=payload_view(record.detail, reveal=reveal),
        timeline=[_entry_view(entry, reveal=reveal) for entry in record.timeline],
    )


def _entry_view(entry: Entry, *, reveal: bool) -> EntryView:
    return EntryView(
        at=entry.at, word=entry.word, attempt=entry.attempt, detail=detail_view(entry.detail, reveal=reveal)
    )


def detail_view(detail: dict[str, Any], *, reveal: bool) -> dict[str, Any]:
    """A step's detail. Its instants (`until`) are ours, and written as all others are."""
    return detail if reveal else {name: _masked(value) for name, value in detail.items()}


def _masked(value: Any) -> Any:
    return value if isinstance(value, datetime) else mask_value("", value)


def dead_view(record: Record, *, reveal: bool) -> DeadView:
    cause = str(record.detail)
    return DeadView(
        **_fields(record, reveal=reveal),
        error_class=record.error_class or "",
        code=record.code,
        cause=cause if reveal else mask_text(cause),
        payload=payload_view(record.payload, reveal=reveal),
    )


def event_view(event: EventRecord) -> EventView:
    return EventView(**event_fields(event))


def event_fields(event: EventRecord) -> dict[str, Any]:
    """An event as everybody may see it. A stream encodes these as they are: a model of each would cost more."""
    data = event.data
    return {
        "seq": event.seq,
        "at": event.at,
        "name": event.name,
        "job": str(event.job) if event.job else None,
        "kind": _masked_kind(event.kind),
        "data": [_event_part(part) for part in data] if isinstance(data, list) else _event_part(data),
    }


@lru_cache(1024)  # few are many events' kinds
def _masked_kind(kind: str) -> str:
    return mask_text(kind)


def _event_part(part: Any) -> Any:
    """Numbers that stand for themselves in an event are counts and instants of ours."""
    return part if part is None or isinstance(part, int) else mask_value("", part)
