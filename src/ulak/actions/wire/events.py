"""The events of the document, as they stand on its topics: one type each, from which the JSON Schemas are made too."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from ulak import codec
from ulak.actions.model import (
    MAX_DEVICE_ID,
    MAX_EVALUATION_KEY,
    MAX_NUMBER,
    MAX_TRACE_ID,
    PLAIN,
    ActionRun,
    Reason,
    Stage,
)
from ulak.clock import to_datetime

REQUESTED_TOPIC = "cinga.action.requested"
EXECUTED_TOPIC = "cinga.action.executed"
FAILED_TOPIC = "cinga.action.failed"
DEAD_TOPIC = "cinga.dlq.action"
RECEIPTS_TOPIC = "cinga.action.receipts"

REQUESTED = "action.execute.requested.v1"
EXECUTED: Final = "action.executed.v1"
FAILED: Final = "action.failed.v1"
DELIVERY_UPDATED: Final = "action.delivery.updated.v1"
DOWNLINK_REQUESTED: Final = "downlink.requested.v1"
DEAD_LETTER = "action.dead_letter.v1"  # flat on its topic; the name is only the schema's

PRODUCER = "action-executor-service"
MESSAGE_EVENT = "actions.message"  # the name under which the event log has what a topic gets

Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
PlanId = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
_INSTANT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z" + codec.END
DeviceId = Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID, pattern=PLAIN)]
EvaluationKey = Annotated[str, Meta(min_length=1, max_length=MAX_EVALUATION_KEY, pattern=PLAIN)]
Instant = Annotated[str, Meta(description="UTC, with a Z.", pattern=_INSTANT)]


class Closed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that has exactly the document's fields, as everything that we write."""


class EventMeta(Closed, frozen=True):
    schema_version: int
    trace_id: str
    producer_service: str
    produced_at: Instant
    process_ms: Number


class EventContext(Closed, frozen=True):
    device_id: DeviceId | None
    stream_id: Number | None


class RequestMeta(msgspec.Struct, omit_defaults=True):
    """Of a request only the trace is used; the producer's other notes are taken and left alone."""

    schema_version: int | None = None
    trace_id: Annotated[str, Meta(min_length=1, max_length=MAX_TRACE_ID, pattern=PLAIN)] | None = None
    producer_service: str | None = None
    produced_at: str | None = None
    process_ms: float | None = None


class RequestContext(msgspec.Struct, omit_defaults=True):
    device_id: DeviceId | None = None
    stream_id: Number | None = None


class RequestData(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    action_plan_id: PlanId
    evaluation_key: EvaluationKey
    group_id: Number | None = None
    rule_id: Number | None = None
    variables: dict[str, Any] | None = None
    language: Annotated[str, Meta(min_length=2, max_length=35, pattern=PLAIN)] | None = None
    critical: bool | None = None


class ActionRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A plan to run for one evaluation of a rule. A repeat of its `evaluation_key` is the first run."""

    data: RequestData
    event: Literal["action.execute.requested.v1"] = "action.execute.requested.v1"
    meta: RequestMeta | None = None
    context: RequestContext | None = None
    error: None = None


class ActionAccepted(msgspec.Struct, frozen=True):
    """The answer to a request."""

    run_id: str
    duplicate: bool
    trace_id: str


class ExecutedData(Closed, frozen=True):
    group_id: int | None
    rule_id: int | None
    action_plan_id: int
    step_order: int
    channel_type: str
    delivery_status: Literal["sent", "delivered", "handed_over"]
    provider_message_id: str | None


class ActionExecuted(Closed, frozen=True):
    event: Literal["action.executed.v1"]
    meta: EventMeta
    context: EventContext
    data: ExecutedData
    error: None


class FailedData(Closed, frozen=True):
    group_id: int | None
    rule_id: int | None
    action_plan_id: int | None
    step_order: int | None
    channel_type: str | None


class FailedError(Closed, frozen=True):
    failed_stage: Stage
    error_code: str
    error_message: str
    retryable: bool
    failed_at: Instant


class ActionFailed(Closed, frozen=True):
    event: Literal["action.failed.v1"]
    meta: EventMeta
    context: EventContext
    data: FailedData
    error: FailedError


class DeliveryData(Closed, frozen=True):
    group_id: int | None
    rule_id: int | None
    action_plan_id: int
    step_order: int
    channel_type: str
    delivery_status: Literal["delivered", "failed"]
    provider_message_id: str


class DeliveryUpdated(Closed, frozen=True):
    event: Literal["action.delivery.updated.v1"]
    meta: EventMeta
    context: EventContext
    data: DeliveryData
    error: None


class DownlinkData(Closed, frozen=True):
    group_id: int | None
    rule_id: int | None
    action_plan_id: int
    step_order: int
    subject: str | None
    body: str


class DownlinkRequested(Closed, frozen=True):
    event: Literal["downlink.requested.v1"]
    meta: EventMeta
    context: EventContext
    data: DownlinkData
    error: None


class ActionDeadLetter(Closed, frozen=True):
    """Flat, as the document's dead-letter policy has it."""

    id: str | None
    run_id: str | None
    action_plan_id: int | None
    step_order: int | None
    channel_type: str | None
    error_code: str
    error_message: str
    retry_count: int
    failed_at: Instant
    reason: Reason
    evaluation_key: str | None
    trace_id: str | None
    device_id: str | None
    stream_id: int | None
    group_id: int | None
    rule_id: int | None


def instant(millis: int) -> str:
    """UTC with a Z, to the millisecond."""
    return to_datetime(millis).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def meta_of(trace_id: str, now: int, process_ms: int) -> EventMeta:
    return EventMeta(1, trace_id, PRODUCER, instant(now), process_ms)


def context_of(run: ActionRun) -> EventContext:
    return EventContext(run.device_id, run.stream_id)


def message(topic: str, key: str | None, value: Any, trace: str | None = None) -> dict[str, Any]:
    """Return the message that the event log keeps and a relay produces: topic, key, value, and the trace if any."""
    return {"topic": topic, "key": key, "value": value} | ({} if trace is None else {"trace": trace})
