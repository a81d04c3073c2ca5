"""The room's decisions, pure: whom a step is for, whether it goes now, what a failure leads to, what comes next."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from ulak.actions.model import (
    NO_RECIPIENT,
    NO_VERIFIED_CHANNEL,
    REACHED,
    UNADDRESSED,
    ActionPlan,
    PlanStep,
    Reason,
    RunState,
    Stage,
    StepState,
    StepTarget,
)
from ulak.actions.quiet import quiet_until

BACKOFF_SECONDS = (1.0, 5.0, 15.0)
MAX_ADDED = 0.1
MAX_RETRY_AFTER_SECONDS = 60.0  # a provider can't park a plan for longer than this
HELD_BY_BRAKE = "BRAKE_HOURLY_CAP"


@dataclass(frozen=True, slots=True)
class StepFailure:
    """Why an attempt or a step did not work. The message is masked already."""

    stage: Stage
    code: str
    message: str
    retryable: bool = False
    uncertain: bool = False
    gone: bool = False
    retry_after_seconds: float | None = None
    poison: bool = False
    unsent: bool = False  # nobody was asked, so it says nothing of the provider


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an attempt may take, and how many follow it."""

    timeout_seconds: float
    retries: int

    def for_step(self, step: PlanStep) -> Limits:
        return Limits(
            self.timeout_seconds if step.timeout_seconds is None else step.timeout_seconds,
            self.retries if step.retries is None else step.retries,
        )


def delay_seconds(retries_so_far: int, asked: float | None = None, chance: random.Random | None = None) -> float:
    """1, 5, 15 s and then 15 again, up to a tenth added; a provider that asks for more gets it, within reason."""
    plain = BACKOFF_SECONDS[min(retries_so_far, len(BACKOFF_SECONDS) - 1)]
    wanted = plain if asked is None else max(plain, min(asked, MAX_RETRY_AFTER_SECONDS))
    return wanted * (1 + MAX_ADDED * (chance or random).random())


def reason_of(failure: StepFailure) -> Reason:
    if failure.stage == "template_render":
        return "template_fatal"
    if failure.poison:
        return "poison"
    return "retry_exhausted" if failure.retryable else "non_retryable"


# Whom


def order_targets(found: Iterable[StepTarget]) -> list[StepTarget]:
    """By priority, the lower first, then by the profile's and the channel's id; each channel once."""
    ordered = sorted(found, key=lambda one: (one.priority, one.profile_id, one.channel_id))
    return list({one.channel_id: one for one in reversed(ordered)}.values())[::-1]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The targets that are left, in order; or why there was never one."""

    targets: tuple[StepTarget, ...] = ()
    failure: StepFailure | None = None


def resolve(
    step: PlanStep, profiles: int, found: Sequence[StepTarget], tried: AbstractSet[int] = frozenset()
) -> Resolution:
    """`profiles` is how many active profiles the step is for, whether they have a channel or not."""
    if step.channel_type in UNADDRESSED:
        return Resolution()
    usable = [one for one in order_targets(found) if one.usable]
    if usable:
        return Resolution(tuple(one for one in usable if one.channel_id not in tried))
    if profiles == 0:
        why = "no enabled route leads to an active profile, and the device has none; add a route or a profile"
        return Resolution(failure=StepFailure("target_resolve", NO_RECIPIENT, why))
    why = f"none of the {profiles} profiles has an enabled and verified {step.channel_type} channel; verify one"
    return Resolution(failure=StepFailure("target_resolve", NO_VERIFIED_CHANNEL, why))


# When


@dataclass(frozen=True, slots=True)
class Wait:
    until: int
    why: str


def pause_of(
    target: StepTarget, now: int, *, critical: bool, quiet_hours: str | None = None, time_zone: str | None = None
) -> Wait | None:
    """Quiet hours put a message off; what is critical passes them."""
    if critical:
        return None
    hours, zone = target.quiet_hours or quiet_hours, target.time_zone or time_zone
    until = quiet_until(now, hours, zone)
    return (
        None if until is None else Wait(until, f"quiet hours of profile {target.profile_id} ({hours} {zone or 'UTC'})")
    )


# After an attempt


def after_failure(
    failure: StepFailure, retry_count: int, retries: int, *, hold: bool
) -> Literal["retry", "hold", "next"]:
    """Try this channel again, wait for a person, or give the channel up."""
    if failure.uncertain and hold:
        return "hold"
    return "retry" if failure.retryable and retry_count < retries else "next"


# After a step


@dataclass(frozen=True, slots=True)
class Onward:
    """The step that is next, or the state in which the run ends."""

    step: PlanStep | None
    state: RunState | None
    why: str


def stops(step: PlanStep, state: StepState) -> bool:
    """Whether a step that ended so ends its run."""
    return step.on_failure == "stop" and state in {StepState.FAILED, StepState.HELD}


def onward(plan: ActionPlan, step: PlanStep, states: dict[int, StepState]) -> Onward:
    """Return the step that follows one that has ended; `states` has every step that was begun, this one included."""
    if stops(step, states[step.step_order]):
        return Onward(None, RunState.FAILED, f"step {step.step_order} failed and stops the plan")
    following = plan.after(step.step_order)
    if following is not None and following.step_order not in states:
        return Onward(following, None, f"step {following.step_order} follows")
    return Onward(None, final_state(states.values()), "no step is left")


def final_state(states: Iterable[StepState]) -> RunState:
    """Failed: none was sent, also where every condition was false: it has reached nobody."""
    return RunState.FAILED if REACHED.isdisjoint(states) else RunState.DONE
