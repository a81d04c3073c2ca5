"""Bodies of the actions routes, as the OpenAPI shows them. The wire keeps the document's snake_case."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
from fastapi import Body, Depends, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ulak.access.caller import Caller
from ulak.actions.model import (
    MAX_DEVICE_ID,
    MAX_NUMBER,
    ActionPlan,
    ActionRoute,
    RecipientChannel,
    RecipientProfile,
)
from ulak.actions.plans.book import PlanHead
from ulak.actions.wire.events import ActionDeadLetter, instant
from ulak.actions.wire.request import MAX_LIMIT
from ulak.http.caller import Needs
from ulak.masking import HIDDEN, mask_recipient, mask_value

T = TypeVar("T")
May = Annotated[Caller, Depends(Needs("actions"))]
Number = Annotated[int, Path(ge=1, le=MAX_NUMBER, description="Its id.", examples=[21])]
NumberFilter = Annotated[int | None, Query(ge=1, le=MAX_NUMBER)]
After = Annotated[int, Query(ge=0, le=MAX_NUMBER, description="`next` of the page above.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Document = Annotated[Any, Body()]  # looked at by the room, which names every field that is wrong


class Snake(BaseModel):
    """Fields as the document spells them."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class PageOf(Snake, Generic[T]):
    items: list[T]
    next: str | None = Field(description="Give it as `after` to get the next page; null at the end.")


class ProfileOut(Snake):
    id: int
    device_id: str | None
    name: str
    status: bool
    priority: int
    time_zone: str | None
    quiet_hours: str | None
    created_at: str
    updated_at: str


class ChannelOut(Snake):
    id: int
    profile_id: int
    channel_type: str
    target: str = Field(description="Masked, unless it may be revealed and that is asked for.")
    target_meta: dict[str, Any]
    enabled: bool
    verify_status: str
    created_at: str
    updated_at: str


class RouteOut(Snake):
    id: int
    action_plan_id: int
    step_order: int
    recipient_profile_id: int
    channel_type: str | None
    enabled: bool
    created_at: str
    updated_at: str


class PlanOut(Snake):
    id: int
    name: str
    critical: bool
    version: int
    steps: list[dict[str, Any]]
    created_at: str
    updated_at: str


class StepOut(Snake):
    step_order: int
    channel_type: str
    state: str
    retry_count: int
    error_code: str | None
    recipient_profile_id: int | None = None
    recipient_channel_id: int | None = None
    provider_message_id: str | None = None
    due_at: str | None = None
    ended_at: str | None = None


class RunOut(Snake):
    run_id: str
    evaluation_key: str
    action_plan_id: int
    plan_version: int
    state: str
    trace_id: str
    device_id: str | None
    stream_id: int | None
    group_id: int | None
    rule_id: int | None
    critical: bool
    accepted_at: str
    ended_at: str | None
    ended_by: str | None
    steps: list[StepOut]


class DeadLetterOut(Snake):
    id: str
    run_id: str
    action_plan_id: int
    step_order: int
    channel_type: str
    error_code: str
    error_message: str
    retry_count: int
    failed_at: str
    reason: str
    evaluation_key: str
    trace_id: str
    device_id: str | None
    stream_id: int | None
    group_id: int | None
    rule_id: int | None


class CauseOut(Snake):
    error_code: str
    reason: str
    channel_type: str
    number: int
    example: str = Field(description="The id of one of them.")


class UnreachableOut(Snake):
    recipient_profile_id: int
    name: str


class DecisionOut(Snake):
    at: str
    step_order: int | None
    decision: str
    why: str
    line: str = Field(description="The same as one line: `step 2: retry: …`.")


class Explanation(Snake):
    run_id: str
    decisions: list[DecisionOut]


class TimelineEntry(Snake):
    at: str
    step_order: int
    channel_type: str
    recipient_profile_id: int | None
    decision: str
    why: str


class Timeline(Snake):
    timeline: list[TimelineEntry]


class SimulationIn(Snake):
    action_plan_id: int = Field(ge=1, le=MAX_NUMBER, strict=True)
    variables: dict[str, Any] | None = None
    device_id: str | None = Field(None, min_length=1, max_length=MAX_DEVICE_ID)
    at: AwareDatetime | None = Field(None, description="When the plan would be asked for; left out, now.")


class CodeIn(Snake):
    code: str = Field(min_length=1, max_length=20)


class RedriveIn(Snake):
    dry_run: bool = Field(False, strict=True)


class RedriveManyIn(Snake):
    """All dead letters that fit; with neither filter, all of the room's."""

    error_code: str | None = Field(None, max_length=100)
    reason: str | None = Field(None, max_length=50)
    dry_run: bool = Field(False, strict=True)
    rate_per_second: float | None = Field(None, ge=0.01, le=10_000, strict=True)


class RedrivenOut(Snake):
    id: str
    dry_run: bool
    step: DeadLetterOut


class RedrivenManyOut(Snake):
    matched: int
    dry_run: bool
    ids: list[str]


class MessageOut(Snake):
    seq: int
    topic: str
    key: str | None
    value: dict[str, Any]


class MessagePage(Snake):
    messages: list[MessageOut]
    after: int = Field(description="Give it as `after` to read on; only the end of the log is an empty page.")


class WatchOut(Snake):
    accepted: int
    ended: int
    waiting: int
    difference: int = Field(description="Accepted, less ended and waiting for a reason: 0, or something was lost.")


def schema_for(*shapes: type[msgspec.Struct]) -> dict[str, Any]:
    """A request body's schema, from the type that reads it."""
    (shown,) = [msgspec.json.schema(shape) for shape in shapes]
    definitions = shown.pop("$defs", {})
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(shown, definitions)}}}
    }


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {name: _inlined(inner, definitions) for name, inner in value.items()}
    return [_inlined(inner, definitions) for inner in value] if isinstance(value, list) else value


def profile_out(profile: RecipientProfile) -> ProfileOut:
    return ProfileOut(**_dated(profile))


def channel_out(channel: RecipientChannel, *, reveal: bool) -> ChannelOut:
    shown = _dated(channel)
    if not reveal:
        shown |= {"target": mask_recipient(channel.target), "target_meta": _masked(channel.target_meta)}
    return ChannelOut(**shown)


def _masked(target_meta: dict[str, Any]) -> dict[str, Any]:
    """Names stay; what is inside headers, keys and parameters is the recipient's own."""
    return {
        name: dict.fromkeys(value, HIDDEN)
        if isinstance(value, dict)
        else [HIDDEN] * len(value)
        if isinstance(value, list)
        else mask_value(name, value)
        for name, value in target_meta.items()
    }


def route_out(route: ActionRoute) -> RouteOut:
    return RouteOut(**_dated(route))


def plan_out(planned: tuple[PlanHead, ActionPlan]) -> PlanOut:
    head, plan = planned
    return PlanOut(
        id=plan.id,
        name=plan.name,
        critical=plan.critical,
        version=plan.version,
        steps=[msgspec.to_builtins(step) for step in plan.steps],
        created_at=instant(head.created_at),
        updated_at=instant(head.updated_at),
    )


def letter_out(letter: ActionDeadLetter) -> DeadLetterOut:
    return DeadLetterOut(**msgspec.structs.asdict(letter))


def _dated(row: msgspec.Struct) -> dict[str, Any]:
    values = msgspec.structs.asdict(row)
    return values | {name: instant(values[name]) for name in ("created_at", "updated_at")}


def following(items: list[Any], limit: int, name: str = "id") -> str | None:
    """Return the cursor that continues a list that goes up by id."""
    return str(getattr(items[-1], name)) if len(items) == limit else None
