"""The room's nouns: plans and their steps, the directory of recipients, runs and their states."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from ulak import codec

ROOM = "actions"
KIND_PREFIX = "actions."
ALL_KINDS = (KIND_PREFIX, KIND_PREFIX + "~")

# No control characters and no line ends: these texts go into logs, headers and keys.
PLAIN = rf"^[^\x00-\x1f\x7f\x85\u2028\u2029]+{codec.END}"
MAX_DEVICE_ID = 21
MAX_NAME = 100
MAX_TARGET = 2048
MAX_EVALUATION_KEY = 200
MAX_TRACE_ID = 200
MAX_STEPS = 100
MAX_NUMBER = (1 << 53) - 1  # ids of the seed's tables are JSON numbers

AddressedType = Literal["push", "whatsapp", "email", "webhook", "sms", "slack"]
ChannelType = Literal[AddressedType, "audit", "downlink"]
ADDRESSED: tuple[str, ...] = get_args(AddressedType)
CHANNEL_TYPES: tuple[str, ...] = get_args(ChannelType)
UNADDRESSED = frozenset(CHANNEL_TYPES).difference(ADDRESSED)  # these need no recipient

OnFailure = Literal["continue", "stop"]
OnUncertain = Literal["resend", "hold"]
Stage = Literal["request_validate", "target_resolve", "template_render", "action_execute"]
Reason = Literal["retry_exhausted", "non_retryable", "template_fatal", "uncertain", "poison"]
REASONS: tuple[str, ...] = get_args(Reason)

TEMPLATE_RENDER, NO_RECIPIENT, NO_VERIFIED_CHANNEL = "TEMPLATE_RENDER", "NO_RECIPIENT", "NO_VERIFIED_CHANNEL"
# Without the number: the caller knows it, and a long one would be masked like a telephone's.
NOT_A_PLAN, NOT_A_PROFILE = "is not the id of an action plan", "is not the id of a recipient profile"


class VerifyStatus(StrEnum):
    PENDING = "pending"
    VERIFIED = "verified"
    FAILED = "failed"


class RunState(StrEnum):
    """`running` is told of an unfinished run whose first step has begun; in the store both are `accepted`."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ACKNOWLEDGED = "acknowledged"


class StepState(StrEnum):
    """`sending` is told of a waiting step whose job has begun; in the store both are `waiting`."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    HELD = "held"
    SKIPPED = "skipped"
    HANDED_OVER = "handed_over"


REACHED = frozenset({StepState.SENT, StepState.DELIVERED, StepState.HANDED_OVER})
ENDED_RUN = frozenset({RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.ACKNOWLEDGED})


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step of a plan's version."""

    step_order: int
    channel_type: str
    template: str | None = None
    subject: str | None = None
    body: str | None = None
    delay_seconds: float = 0.0
    condition: str | None = None
    timeout_seconds: float | None = None
    retries: int | None = None
    on_failure: OnFailure = "continue"
    on_uncertain: OnUncertain = "resend"
    receipt_seconds: float | None = None


class ActionPlan(msgspec.Struct, frozen=True):
    """A version of a plan: never changed once it is kept."""

    id: int
    version: int
    name: str
    critical: bool
    steps: tuple[PlanStep, ...]

    def first(self) -> PlanStep:
        return self.steps[0]

    def step(self, step_order: int) -> PlanStep | None:
        return next((step for step in self.steps if step.step_order == step_order), None)

    def after(self, step_order: int) -> PlanStep | None:
        """The step that follows, by its number."""
        return next((step for step in self.steps if step.step_order > step_order), None)


class RecipientProfile(msgspec.Struct, frozen=True):
    """Somebody, or something, that plans reach. `quiet_hours` is like 22:00-07:00, in `time_zone`."""

    id: int
    device_id: str | None
    name: str
    status: bool
    priority: int
    time_zone: str | None
    quiet_hours: str | None
    created_at: int
    updated_at: int


class RecipientChannel(msgspec.Struct, frozen=True):
    """One way to reach a profile: a row of recipient_channels."""

    id: int
    profile_id: int
    channel_type: str
    target: str
    target_meta: dict[str, Any]
    enabled: bool
    verify_status: str
    created_at: int
    updated_at: int

    def __repr__(self) -> str:
        # A target is personal: it must not reach a log by accident.
        return f"RecipientChannel({self.id}, {self.channel_type})"


class ActionRoute(msgspec.Struct, frozen=True):
    """Which profile a step of a plan is for."""

    id: int
    action_plan_id: int
    step_order: int
    recipient_profile_id: int
    channel_type: str | None
    enabled: bool
    created_at: int
    updated_at: int


class StepTarget(NamedTuple):
    """A channel that a step may be sent to, in the order of resolution."""

    route_id: int | None
    profile_id: int
    priority: int
    channel_id: int
    channel_type: str
    target: str
    target_meta: str
    usable: bool  # enabled and verified
    time_zone: str | None
    quiet_hours: str | None


class ActionRun(msgspec.Struct, array_like=True):
    """A row of actions_run, in the order of its columns."""

    id: int
    evaluation_key: str
    plan_id: int
    plan_version: int
    state: str
    trace_id: str
    device_id: str | None
    stream_id: int | None
    group_id: int | None
    rule_id: int | None
    language: str | None
    critical: bool
    variables: str
    accepted_at: int
    ended_at: int | None = None
    ended_by: str | None = None
    trace: str | None = None  # to which all its jobs belong; `trace_id` is the asker's own word


class ActionStep(msgspec.Struct, array_like=True):
    """A row of actions_step, in the order of its columns."""

    run: int
    step_order: int
    state: str
    channel_type: str
    job: int
    due_at: int
    route_id: int | None = None
    profile_id: int | None = None
    channel_id: int | None = None
    retry_count: int = 0
    error_code: str | None = None
    error_message: str | None = None
    reason: str | None = None
    provider_message_id: str | None = None
    deferred_until: int | None = None
    tried: str = "[]"
    log: str = ""
    ended_at: int | None = None
    timer: int | None = None
    process_ms: int = 0  # of the last attempt


def kind_of(channel_type: str) -> str:
    """Attempts, time limit and bound belong to a kind, so each channel is one."""
    return KIND_PREFIX + channel_type
