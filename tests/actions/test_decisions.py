"""The room's decisions: whom, when, what after a failure, what after a step."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.actions import decide
from ulak.actions.brakes import Brake, Spent, over, segments_of
from ulak.actions.decide import StepFailure, Wait
from ulak.actions.jobs import StepBackoff
from ulak.actions.model import ActionPlan, PlanStep, RunState, StepState, StepTarget
from ulak.actions.plans.simulate import Around, StepWords, simulate
from ulak.actions.quiet import parse_hours, quiet_until
from ulak.clock import to_datetime, to_millis
from ulak.errors import Invalid
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.loops.classify import bounded
from ulak.spine.outcome import Retry

PUSH = PlanStep(1, "push", body="b")


def target(channel: int, *, priority: int = 0, profile: int = 1, usable: bool = True, quiet: str | None = None):
    return StepTarget(5, profile, priority, channel, "push", "token", "{}", usable, None, quiet)


def at(text: str) -> int:
    return to_millis(datetime.fromisoformat(text).replace(tzinfo=UTC))


def test_targets_go_by_priority_then_by_id():
    found = [target(3, priority=1), target(2, profile=9), target(1, profile=4), target(4, usable=False)]
    assert [one.channel_id for one in decide.resolve(PUSH, 3, found).targets] == [1, 2, 3]


def test_a_channel_that_was_tried_is_not_tried_again():
    assert [one.channel_id for one in decide.resolve(PUSH, 1, [target(1), target(2)], {1}).targets] == [2]


def test_without_a_profile_there_is_no_recipient_and_without_a_verified_channel_that_is_said():
    nobody = decide.resolve(PUSH, 0, []).failure
    unverified = decide.resolve(PUSH, 1, [target(1, usable=False)]).failure
    assert nobody is not None
    assert nobody.code == "NO_RECIPIENT"
    assert unverified is not None
    assert unverified.code == "NO_VERIFIED_CHANNEL"


def test_audit_and_downlink_need_no_recipient():
    assert decide.resolve(PlanStep(1, "audit"), 0, []).failure is None


@given(retries=st.integers(0, 30), seed=st.integers())
def test_backoff_is_1_5_15_and_at_most_a_tenth_more(retries, seed):
    plain = (1.0, 5.0, 15.0)[min(retries, 2)]
    assert plain <= decide.delay_seconds(retries, None, random.Random(seed)) <= plain * 1.1


def test_a_provider_that_asks_for_more_time_gets_it_within_reason():
    assert decide.delay_seconds(0, 7.0) >= 7.0
    assert decide.delay_seconds(0, 86_400.0) <= 66.0
    assert decide.delay_seconds(2, 0.1) >= 15.0


@pytest.mark.parametrize(
    ("failure", "count", "hold", "verdict"),
    [
        (StepFailure("action_execute", "X", "", retryable=True), 1, False, "retry"),
        (StepFailure("action_execute", "X", "", retryable=True), 2, False, "next"),
        (StepFailure("action_execute", "X", ""), 0, False, "next"),
        (StepFailure("action_execute", "X", "", retryable=True, uncertain=True), 0, True, "hold"),
        (StepFailure("action_execute", "X", "", retryable=True, uncertain=True), 0, False, "retry"),
    ],
)
def test_what_a_failure_leads_to(failure, count, hold, verdict):
    assert decide.after_failure(failure, count, 2, hold=hold) == verdict


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2027-01-15T21:59:59", None),
        ("2027-01-15T22:00:00", "2027-01-16T07:00:00"),
        ("2027-01-16T06:59:59", "2027-01-16T07:00:00"),
        ("2027-01-16T07:00:00", None),
    ],
)
def test_quiet_hours_over_midnight(now, until):
    assert quiet_until(at(now), "22:00-07:00", "UTC") == (None if until is None else at(until))


def test_quiet_hours_are_those_of_the_persons_own_clock():
    assert quiet_until(at("2027-01-15T20:00:00"), "22:00-07:00", "Europe/Istanbul") == at("2027-01-16T04:00:00")


@given(
    minutes=st.integers(0, 366 * 24 * 60), zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tehran"])
)
def test_quiet_hours_end_by_the_wall_clock_and_never_in_the_past(minutes, zone):
    now = at("2026-01-01T00:00:00") + minutes * 60_000
    until = quiet_until(now, "22:00-02:30", zone)
    if until is not None:
        assert now < until <= now + 6 * 3_600_000
        assert until - now == 60_000 or quiet_until(until, "22:00-02:30", zone) is None


def test_summer_time_makes_the_night_an_hour_shorter():
    # In Berlin the clocks go from 02:00 to 03:00 on 28 March 2027.
    until = quiet_until(at("2027-03-27T21:00:00"), "22:00-07:00", "Europe/Berlin")
    assert until is not None
    assert to_datetime(until) == datetime(2027, 3, 28, 5, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "22-7", "25:00-07:00", "22:00-22:00", "22:00–07:00"])
def test_hours_that_are_none(text):
    assert parse_hours(text) is None


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("ş" * 70, 1),
        ("ş" * 71, 2),
        ("😀" * 36, 2),
    ],
)
def test_an_sms_is_cut_as_operators_cut_it(text, segments):
    assert segments_of(text) == segments


def test_quiet_hours_wait_and_what_is_critical_passes():
    night = (target(1, quiet="22:00-07:00"), at("2027-01-15T23:00:00"))
    assert isinstance(decide.pause_of(*night, critical=False), Wait)
    assert decide.pause_of(*night, critical=True) is None


def test_a_brake_is_in_messages_or_in_segments():
    spent = Spent(3, 3)
    assert "3 messages" in over(Brake(messages=3), spent, 1)
    assert "3 SMS segments" in over(Brake(segments=3), spent, 1)
    assert over(Brake(4, 4), spent, 1) is over(Brake(), spent, 1) is None


def _plan(*steps: PlanStep) -> ActionPlan:
    return ActionPlan(1, 1, "p", critical=False, steps=steps)


def test_a_failed_step_lets_the_next_one_follow_unless_it_stops_the_plan():
    plan = _plan(PUSH, PlanStep(2, "email", body="b", on_failure="stop"), PlanStep(3, "audit"))
    first = decide.onward(plan, plan.steps[0], {1: StepState.FAILED})
    assert first.step == plan.steps[1]
    stopped = decide.onward(plan, plan.steps[1], {1: StepState.SENT, 2: StepState.FAILED})
    assert (stopped.step, stopped.state) == (None, RunState.FAILED)


@pytest.mark.parametrize(
    ("states", "ends"),
    [
        ([StepState.SENT, StepState.FAILED], RunState.DONE),
        ([StepState.FAILED, StepState.SKIPPED], RunState.FAILED),
        ([StepState.HELD], RunState.FAILED),
        ([StepState.SKIPPED], RunState.FAILED),
        ([StepState.HANDED_OVER], RunState.DONE),
    ],
)
def test_a_run_has_failed_when_none_was_sent(states, ends):
    assert decide.final_state(states) == ends


def _walk(plan: ActionPlan, resolutions, *, condition: bool = True, text: str = "b", **around):
    words = StepWords(lambda _: condition, lambda _: text)
    given = {"critical": False, "quiet_hours": None, "time_zone": None, "brakes": {}, **around}
    return simulate(plan, at("2027-01-15T21:00:00"), words, Around(resolutions, **given))


def test_a_simulation_tells_delay_quiet_hours_and_sending_on_a_virtual_clock():
    plan = _plan(PUSH, PlanStep(2, "push", body="b", delay_seconds=7200), PlanStep(3, "downlink"))
    one = decide.resolve(PUSH, 1, [target(1, quiet="22:00-07:00")])
    told = [(entry["at"], entry["step_order"], entry["decision"]) for entry in _walk(plan, {1: one, 2: one, 3: one})]
    assert told == [
        ("2027-01-15T21:00:00.000Z", 1, "send"),
        ("2027-01-15T21:00:00.000Z", 2, "wait"),
        ("2027-01-15T23:00:00.000Z", 2, "wait"),
        ("2027-01-16T07:00:00.000Z", 2, "send"),
        ("2027-01-16T07:00:00.000Z", 3, "hand_over"),
    ]


def test_a_simulation_counts_the_plans_own_messages_and_begins_each_hour_anew():
    again = (PlanStep(place, "push", body="b") for place in (2, 3))
    plan = _plan(PUSH, *again, PlanStep(4, "push", body="b", delay_seconds=3600))
    one = decide.resolve(PUSH, 1, [target(1)])
    around = {"brakes": {"push": Brake(messages=2)}, "spent": {1: Spent(1, 0)}}
    told = _walk(plan, dict.fromkeys((1, 2, 3, 4), one), **around)
    assert [entry["decision"] for entry in told] == ["send", "fail", "fail", "wait", "send"]
    assert told[1]["why"] == "held: channel 1 had 2 messages in this hour; the brake is at 2"
    urgent = _walk(plan, dict.fromkeys((1, 2, 3, 4), one), critical=True, **around)
    assert [entry["decision"] for entry in urgent] == ["send", "send", "send", "wait", "send"]


def test_a_simulation_skips_and_fails_as_a_run_would():
    plan = _plan(PlanStep(1, "push", body="b", condition="x", on_failure="stop"), PlanStep(2, "audit"))
    assert [entry["decision"] for entry in _walk(plan, {}, condition=False)] == ["skip", "send"]
    alone = _walk(_plan(plan.steps[0]), {}, condition=False)
    assert alone[0]["why"] == "its condition is false: x"  # it has not stopped the plan
    failed = _walk(plan, {1: decide.resolve(PUSH, 0, [])})
    assert [entry["decision"] for entry in failed] == ["fail"]
    assert failed[0]["why"].startswith("NO_RECIPIENT")
    assert failed[0]["why"].endswith("step 1 failed and stops the plan")


def test_a_template_that_lacks_a_variable_fails_in_a_simulation_too():
    def body(_: PlanStep) -> str:
        raise Invalid("needs the variable 'x'")

    around = Around({}, critical=False, quiet_hours=None, time_zone=None, brakes={})
    entries = simulate(_plan(PUSH), 0, StepWords(lambda _: True, body), around)
    assert entries[0]["decision"] == "fail"
    assert "TEMPLATE_RENDER" in entries[0]["why"]


def test_a_death_of_our_process_does_not_lengthen_the_backoff():
    handler = Handler("actions.push", asyncio.sleep, max_attempts=100, backoff=StepBackoff())
    paused = bounded(Retry(None, "busy"), handler, Job(1, "actions.push", {}, attempt=3, epoch=1, crashes=2))
    assert 1.0 <= paused.after_seconds <= 1.1
