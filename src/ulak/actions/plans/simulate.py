"""A plan on a virtual clock: what would be sent to whom and when, and why; nothing is sent, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ulak.actions import decide
from ulak.actions.brakes import NO_BRAKE, Brake, Spent, hour_of, over, segments_to
from ulak.actions.decide import Resolution
from ulak.actions.model import ActionPlan, PlanStep, StepState
from ulak.actions.wire.events import instant
from ulak.errors import Error


@dataclass(frozen=True, slots=True)
class StepWords:
    """How a step's texts come out: whether its condition holds, and what it says."""

    holds: Callable[[PlanStep], bool]
    body: Callable[[PlanStep], str]


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of a plan: each step's recipients, and how much each channel had in the hour of its start."""

    resolutions: dict[int, Resolution]
    critical: bool
    quiet_hours: str | None
    time_zone: str | None
    brakes: dict[str, Brake]
    spent: dict[int, Spent] = field(default_factory=dict)


@dataclass(slots=True)
class _Walk:
    at: int
    spent: dict[tuple[int, int], Spent]  # by channel and hour, the plan's own messages too
    entries: list[dict[str, Any]] = field(default_factory=list)
    states: dict[int, StepState] = field(default_factory=dict)

    def brake(self, brake: Brake, channel: int, segments: int) -> str | None:
        """Count a message; why it is held, if it is."""
        place = (channel, hour_of(self.at))
        spent = self.spent.get(place, Spent())
        held = over(brake, spent, segments)
        if held is None:
            self.spent[place] = Spent(spent.messages + 1, spent.segments + segments)
        return held

    def note(self, step: PlanStep, decision: str, why: str, profile: int | None = None, channel: str = "") -> None:
        self.entries.append(
            {
                "at": instant(self.at),
                "step_order": step.step_order,
                "channel_type": channel or step.channel_type,
                "recipient_profile_id": profile,
                "decision": decision,
                "why": why,
            }
        )


def simulate(plan: ActionPlan, at: int, words: StepWords, around: Around) -> list[dict[str, Any]]:
    """The timeline. An attempt is taken to succeed at once."""
    walk = _Walk(at, {(channel, hour_of(at)): spent for channel, spent in around.spent.items()})
    step: PlanStep | None = plan.first()
    while step is not None:
        if step.delay_seconds:
            walk.note(step, "wait", f"delay of {step.delay_seconds:g} s after the step before")
            walk.at += round(step.delay_seconds * 1000)
        ended = walk.states[step.step_order] = _run(step, walk, words, around)
        onward = decide.onward(plan, step, walk.states)
        if decide.stops(step, ended):
            walk.entries[-1]["why"] += f"; {onward.why}"
        step = onward.step
    return walk.entries


def _run(step: PlanStep, walk: _Walk, words: StepWords, around: Around) -> StepState:
    try:
        if step.condition is not None and not words.holds(step):
            walk.note(step, "skip", f"its condition is false: {step.condition}")
            return StepState.SKIPPED
        return _address(step, words.body(step), walk, around)
    except Error as error:
        walk.note(step, "fail", f"TEMPLATE_RENDER: {error}")
        return StepState.FAILED


def _address(step: PlanStep, body: str, walk: _Walk, around: Around) -> StepState:
    if step.channel_type == "downlink":
        walk.note(step, "hand_over", "goes to the device by the downlink topic")
        return StepState.HANDED_OVER
    if step.channel_type == "audit":
        walk.note(step, "send", "a line in the audit chain")
        return StepState.SENT
    resolution = around.resolutions[step.step_order]
    if resolution.failure is not None:
        walk.note(step, "fail", f"{resolution.failure.code}: {resolution.failure.message}")
        return StepState.FAILED
    return _send(step, body, resolution, walk, around)


def _send(step: PlanStep, body: str, resolution: Resolution, walk: _Walk, around: Around) -> StepState:
    target = resolution.targets[0]
    profile, channel = target.profile_id, target.channel_type
    hours, zone = around.quiet_hours, around.time_zone
    pause = decide.pause_of(target, walk.at, critical=around.critical, quiet_hours=hours, time_zone=zone)
    if pause is not None:
        walk.note(step, "wait", pause.why, profile, channel)
        walk.at = pause.until
    brake = NO_BRAKE if around.critical else around.brakes.get(channel, NO_BRAKE)
    held = walk.brake(brake, target.channel_id, segments_to(target, body))
    if held is not None:
        walk.note(step, "fail", f"held: channel {target.channel_id} had {held}", profile, channel)
        return StepState.HELD
    others = len(resolution.targets) - 1
    fallback = f"; {others} more to fall back on" if others else ""
    walk.note(step, "send", f"{_origin(target.route_id)}, channel {target.channel_id}{fallback}", profile, channel)
    return StepState.SENT


def _origin(route: int | None) -> str:
    return "the device's own profile" if route is None else f"route {route}"
