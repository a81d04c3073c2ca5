"""Random plans, faults and stops: whatever happens, every step ends once, every event is told once, nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actions.conftest import Scripted, World, build
from tests.postgres_server import fresh_database
from ulak import Permanent, Transient
from ulak.actions.model import StepState
from ulak.channels.channel import EndpointGone, Receipt, Uncertain
from ulak.clock import ManualClock
from ulak.errors import Error, Throttled
from ulak.testing import advance, drain

ANSWERS = {
    "yes": lambda: Receipt("fcm:1"),
    "busy": lambda: Transient("busy", code="FCM_HTTP_503"),
    "no": lambda: Permanent("no", code="FCM_INVALID"),
    "unknown": lambda: Uncertain("the line broke", code="FCM_TIMEOUT"),
    "later": lambda: Throttled("slow down", retry_after_seconds=20, code="FCM_QUOTA"),
    "gone": lambda: EndpointGone("gone", code="FCM_UNREGISTERED"),
}
_step = st.fixed_dictionaries(
    {"channel_type": st.sampled_from(["push", "push", "push", "audit", "downlink"])},
    optional={
        "condition": st.sampled_from(["flag", "not flag"]),
        "delay_seconds": st.sampled_from([5, 60]),
        "on_failure": st.sampled_from(["continue", "stop"]),
        "on_uncertain": st.sampled_from(["resend", "hold"]),
        "receipt_seconds": st.just(30),
        "retries": st.integers(0, 2),
    },
)
_scenarios = st.fixed_dictionaries(
    {
        "steps": st.lists(_step, min_size=1, max_size=4),
        "answers": st.lists(st.sampled_from(sorted(ANSWERS)), max_size=12),
        "runs": st.integers(1, 3),
        "channels": st.integers(1, 3),
        "flag": st.booleans(),
        "stop": st.sampled_from([None, None, "cancel", "acknowledge"]),
        "stop_after": st.sampled_from([0, 3, 20]),
        "redrive": st.booleans(),
    }
)


async def _play(address: str, scenario: dict[str, Any]) -> None:
    channel = Scripted(answers=[ANSWERS[name]() for name in scenario["answers"]])
    async with build(address, ManualClock(), channel) as ulak:
        told = World(ulak)
        targets = [("push", f"token-{number}") for number in range(scenario["channels"])]
        plan = await told.ready(*scenario["steps"], channels=targets)
        runs = [await told.ask(plan, variables={"flag": scenario["flag"]}) for _ in range(scenario["runs"])]
        await drain(ulak)
        await advance(ulak, scenario["stop_after"])
        if scenario["stop"] is not None:
            await _stop(ulak, scenario["stop"], runs[0])
        assert (await ulak.actions.watchdog())["difference"] == 0
        await _until_ended(ulak, runs)
        redriven = len(await ulak.actions.redrive_many()) if scenario["redrive"] else 0
        await drain(ulak)
        views = await _until_ended(ulak, runs)
        assert (await ulak.actions.watchdog()) == {
            "accepted": len(runs),
            "ended": len(runs),
            "waiting": 0,
            "difference": 0,
        }
        _check_events(await told.topics(), views, redriven)
        _check_states(views, scenario)
        _check_messages(channel)


async def _until_ended(ulak, runs: list[Any]) -> list[dict[str, Any]]:
    """The runs at last: four steps that wait for receipts at three channels take twelve timers, and retries theirs."""
    views: list[dict[str, Any]] = []
    for seconds in (5, 20, *[60] * 40):
        await advance(ulak, seconds)
        views = [await ulak.actions.run(run) for run in runs]
        under_way = any(step["state"] in {"waiting", "sending"} for view in views for step in view["steps"])
        if not under_way and not (await ulak.actions.watchdog())["waiting"]:
            break
    return views


async def _stop(ulak, how: str, run: Any) -> None:
    try:
        await (ulak.actions.cancel(run) if how == "cancel" else ulak.actions.acknowledge(run))
    except Error:
        view = await ulak.actions.run(run)
        assert view["state"] in {"done", "failed"}


def _check_events(messages, views, redriven: int) -> None:
    """One executed or failed event per step that ended, and one more per redrive."""
    told = Counter(
        (one["event"], one["data"]["step_order"]) for one in messages if str(one.get("event")).startswith("action.")
    )
    ended = sum(step["state"] not in {"skipped", "waiting"} for view in views for step in view["steps"])
    assert ended <= told.total() <= ended + redriven
    failed = sum(number for (event, _), number in told.items() if event == "action.failed.v1")
    assert sum("reason" in one for one in messages) == failed


def _check_states(views, scenario) -> None:
    for view in views:
        states = [StepState(step["state"]) for step in view["steps"]]
        assert not {StepState.WAITING, StepState.SENDING} & set(states)
        if view["state"] == "done":
            assert set(states) - {StepState.FAILED, StepState.HELD}
        for step, state in zip(scenario["steps"], states, strict=True):
            if step.get("condition") == ("not flag" if scenario["flag"] else "flag"):
                assert state == StepState.SKIPPED


def _check_messages(channel: Scripted) -> None:
    """A step at a channel has one key, whatever is retried or redriven."""
    keys: dict[tuple[Any, ...], set[str]] = {}
    for message in channel.messages:
        step = (message.metadata["run_id"], message.metadata["step_order"], message.recipient)
        keys.setdefault(step, set()).add(message.idempotency_key)
    assert all(len(found) <= 2 for found in keys.values())  # a receipt that did not come may lead back to a channel


@settings(max_examples=40)
@given(scenario=_scenarios)
def test_in_memory(scenario):
    asyncio.run(_play("memory:", scenario))


@pytest.mark.postgres
@settings(max_examples=2)
@given(scenario=_scenarios)
def test_on_postgresql(scenario):
    with fresh_database() as address:
        asyncio.run(_play(address, scenario))
