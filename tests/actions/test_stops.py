"""Stopping runs, holding steps, redriving letters, quiet hours, brakes, receipts that do not come."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tests.actions.conftest import states
from ulak import Conflict, IllegalTransition, Invalid, NotFound, Permanent, Transient
from ulak.actions import brakes
from ulak.channels.channel import Receipt, Uncertain
from ulak.clock import ManualClock
from ulak.spine.units.dead_letters import Filter
from ulak.testing import advance, drain

PUSH = {"channel_type": "push"}


async def test_a_cancelled_run_sends_nothing_more(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, {**PUSH, "delay_seconds": 60}))
        cancelled = await ulak.actions.cancel(run["run_id"])
        await advance(ulak, 120)
        with pytest.raises(IllegalTransition):
            await ulak.actions.acknowledge(run["run_id"])
        watched = await ulak.actions.watchdog()
    assert (cancelled["state"], states(cancelled)) == ("cancelled", ["sent", "skipped"])
    assert len(channel.messages) == 1
    assert watched["difference"] == 0


async def test_an_acknowledgement_stops_what_is_retrying(make, world, channel):
    channel.by_recipient["token-1"] = Transient("busy")
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, PUSH))
        acknowledged = await ulak.actions.acknowledge(run["run_id"], who="ada")
        await advance(ulak, 60)
        again = await ulak.actions.acknowledge(run["run_id"])
        lines = [entry["line"] for entry in await ulak.actions.explain(run["run_id"])]
    assert (acknowledged["state"], acknowledged["ended_by"]) == ("acknowledged", "ada")
    assert again["state"] == "acknowledged"
    assert states(acknowledged) == ["skipped", "skipped"]
    assert len(channel.messages) == 1
    assert "run: end: the run is acknowledged by ada" in lines


async def test_the_link_of_a_message_acknowledges_its_run_and_no_other_does(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ acknowledge_url }}"}, {**PUSH, "delay_seconds": 60})
        run = await told.run(plan)
        token = channel.bodies[0].rpartition("/")[2]
        with pytest.raises(NotFound):
            await ulak.actions.acknowledge_by_link(token[:-2] + ("AA" if token[-2:] != "AA" else "BB"))
        stopped = await ulak.actions.acknowledge_by_link(token)
    assert stopped["run_id"] == run["run_id"]
    assert (stopped["state"], stopped["ended_by"]) == ("acknowledged", "link")


async def test_a_redrive_keeps_the_key_and_is_possible_again_after_the_next_failure(make, world, channel, monkeypatch):
    gate, handle = asyncio.Event(), channel.handle

    async def handle_behind_the_gate(message):
        await gate.wait()
        return await handle(message)

    channel.answers = [Permanent("no", code="FCM_INVALID"), Permanent("no", code="FCM_INVALID"), Receipt("fcm:x")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH))
        (letter,) = await ulak.actions.dead_letters()
        number = int(letter.id)
        await ulak.actions.redrive(number, dry_run=True)
        assert len(channel.messages) == 1
        monkeypatch.setattr(channel, "handle", handle_behind_the_gate)
        await ulak.actions.redrive(number)
        with pytest.raises(NotFound):
            await ulak.actions.redrive(number)
        gate.set()
        await drain(ulak)
        await ulak.actions.redrive(number)
        await drain(ulak)
        assert await ulak.actions.dead_letters() == []
        run = await told.look(run["run_id"])
        failed, executed = await told.topics("cinga.action.failed"), await told.topics("cinga.action.executed")
    assert (run["state"], states(run)) == ("done", ["sent"])
    assert len({message.idempotency_key for message in channel.messages}) == 1
    assert (len(failed), len(executed)) == (2, 1)


async def test_a_redriven_step_that_had_stopped_its_plan_lets_it_go_on(make, world, channel):
    channel.answers = [Permanent("no")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "on_failure": "stop"}, {**PUSH, "body": "two"}))
        assert await ulak.actions.redrive_many(reason="non_retryable")
        await drain(ulak)
        run = await told.look(run["run_id"])
    assert (run["state"], states(run)) == ("done", ["sent", "sent"])
    assert channel.bodies == ["b", "b", "two"]


async def test_a_redrive_at_a_rate_goes_on_by_itself(make, world, channel):
    channel.answers = [Permanent("no")] * 3
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        for _ in range(3):
            await told.run(plan)
        assert len(await ulak.actions.start_redrive(0.5, reason="non_retryable")) == 3
        with pytest.raises(Conflict):
            await ulak.actions.start_redrive(0.5)
        while len(channel.messages) < 6:
            await advance(ulak, 2)
        assert await ulak.actions.dead_letters() == []


async def test_a_redrive_at_a_rate_is_the_stores_one_and_is_shown_and_stopped_like_any_other(make, world, channel):
    channel.answers = [Permanent("no")] * 3
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        for _ in range(3):
            await told.run(plan)
        await ulak.actions.start_redrive(0.5)
        with pytest.raises(Conflict):
            await ulak.redriver.start(Filter(), 0.5, 3)
        while len(channel.messages) < 4:
            await advance(ulak, 0)
        stopped = await ulak.redriver.stop()
        await advance(ulak, 10)
        left = await ulak.actions.dead_letters()
    assert (stopped.state, stopped.matched, stopped.redriven) == ("stopped", 3, 1)
    assert (len(left), len(channel.messages)) == (2, 4)


async def test_a_mended_letter_says_what_it_was_mended_to(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "body": "Level {{ level }}"}))
        (letter,) = await ulak.actions.dead_letters(error_code="TEMPLATE_RENDER")
        await ulak.actions.mend(int(letter.id), {"variables": {"level": 4}})
        await ulak.actions.redrive(int(letter.id))
        await drain(ulak)
        run = await told.look(run["run_id"])
    assert (run["state"], channel.bodies) == ("done", ["Level 4"])


@pytest.mark.parametrize(
    ("mending", "field"),
    [
        ({"body": "{{ broken"}, "body"),
        ({"subject": "{% if %}"}, "subject"),
        ({"variables": {"text": "x" * 70_000}}, "variables"),
        ({"target": "other@example.org"}, "target"),
    ],
)
async def test_a_letter_is_not_mended_into_what_can_not_be_sent(make_in_memory, world, mending, field):
    async with make_in_memory() as ulak:
        told = world(ulak)
        await told.run(await told.ready({**PUSH, "body": "Level {{ level }}"}))
        (letter,) = await ulak.actions.dead_letters()
        with pytest.raises(Invalid) as caught:
            await ulak.actions.mend(int(letter.id), mending)
    assert [name for name, _ in caught.value.fields] == [field]


async def test_an_uncertain_step_that_must_not_be_sent_twice_is_held(make, world, channel):
    channel.answers = [Uncertain("the line broke", code="FCM_TIMEOUT")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "on_uncertain": "hold"}))
        (letter,) = await ulak.actions.dead_letters(reason="uncertain")
    assert (states(run), run["state"]) == (["held"], "failed")
    assert (letter.error_code, letter.retry_count) == ("FCM_TIMEOUT", 0)
    assert len(channel.messages) == 1


async def test_without_a_delivered_receipt_in_time_the_next_channel_is_tried(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "receipt_seconds": 30}, channels=[("push", "one"), ("push", "two")])
        run = await told.run(plan)
        assert (run["state"], states(run)) == ("running", ["sent"])
        await advance(ulak, 31)
        assert channel.recipients == ["one", "two"]
        run = await told.look(run["run_id"], after_seconds=31)
        executed = await told.topics("cinga.action.executed")
    assert (run["state"], states(run), len(executed)) == ("done", ["sent"], 1)


async def test_quiet_hours_defer_and_merge_and_what_is_critical_passes(make, world, channel, clock):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ n }}"}, quiet_hours="22:00-07:00", time_zone="Europe/Istanbul")
        clock.advance((datetime(2027, 1, 15, 20, tzinfo=UTC) - datetime(2027, 1, 15, 8, tzinfo=UTC)).total_seconds())
        first = await told.run(plan, variables={"n": "one"})
        second = await told.run(plan, variables={"n": "two"})
        await told.run(plan, variables={"n": "now"}, critical=True)
        assert channel.bodies == ["now"]
        assert states(first) == ["waiting"]
        third = await told.ask(plan, variables={"n": "three"})
        await drain(ulak)
        await ulak.actions.cancel(third)
        watched = await ulak.actions.watchdog()
        await advance(ulak, 9 * 3600)
        first, second = await told.look(first["run_id"]), await told.look(second["run_id"])
        lines = [entry["line"] for entry in await ulak.actions.explain(first["run_id"])]
    assert watched["difference"] == 0
    assert channel.bodies == ["now", "one\n\ntwo"]
    assert (first["state"], second["state"]) == ("done", "done")
    assert any("quiet hours" in line for line in lines)
    assert any("merged with 1 others" in line for line in lines)


async def test_a_merged_message_that_fails_for_good_goes_out_one_by_one(make, world, channel, clock):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ n }}"}, quiet_hours="07:00-09:00")
        runs = [await told.run(plan, variables={"n": name}) for name in ("one", "two")]
        channel.answers = [Permanent("too long", code="FCM_INVALID")]
        await advance(ulak, 3601)
        runs = [await told.look(run["run_id"]) for run in runs]
    assert channel.bodies == ["one\n\ntwo", "one", "two"]
    assert {run["state"] for run in runs} == {"done"}


@pytest.mark.parametrize(("channel_type", "target"), [("push", "token-1"), ("webhook", "https://example.org/h")])
async def test_over_the_hours_cap_a_message_is_held_and_the_next_hour_is_free(make, world, channel_type, target):
    async with make(actions={channel_type: {"messages_per_hour": 2}}) as ulak:
        told = world(ulak)
        plan = await told.ready({"channel_type": channel_type}, channels=[(channel_type, target)])
        runs = [await told.run(plan) for _ in range(3)]
        urgent = await told.run(plan, critical=True)
        (letter,) = await ulak.actions.dead_letters()
        await advance(ulak, 3600)
        later = await told.run(plan)
    assert [states(run) for run in runs] == [["sent"], ["sent"], ["held"]]
    assert states(urgent) == states(later) == ["sent"]
    assert letter.error_code == "BRAKE_HOURLY_CAP"


async def test_a_storm_at_once_is_braked_like_one_message_after_the_other(make, world, channel):
    async with make(actions={"push": {"messages_per_hour": 3}}) as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        await asyncio.gather(*(told.ask(plan) for _ in range(40)))
        await drain(ulak)
        letters = await ulak.actions.dead_letters(error_code="BRAKE_HOURLY_CAP")
        watched = await ulak.actions.watchdog()
    assert (len(channel.messages), len(letters)) == (3, 37)
    assert (watched["ended"], watched["difference"]) == (40, 0)


async def test_a_retry_counts_once_and_a_redrive_by_a_person_passes_the_brake(make, world, channel):
    channel.answers = [Transient("busy", code="FCM_HTTP_503")]
    async with make(actions={"push": {"messages_per_hour": 2}}) as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        retried = await told.run(plan)
        await advance(ulak, 2)
        runs = [await told.run(plan) for _ in range(2)]
        (letter,) = await ulak.actions.dead_letters()
        await ulak.actions.redrive(int(letter.id))
        await drain(ulak)
        retried, *runs = [await told.look(run["run_id"]) for run in (retried, *runs)]
    assert [states(run) for run in (retried, *runs)] == [["sent"], ["sent"], ["sent"]]
    assert len(channel.messages) == 4


async def test_a_merged_message_over_the_cap_is_held_in_its_parts(make, world, channel, clock):
    async with make(actions={"push": {"messages_per_hour": 1}}) as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, quiet_hours="07:30-09:00")
        runs = [await told.run(plan) for _ in range(2)]
        await told.run(plan, critical=True)
        await ulak.store.write(_fill_the_hour, (await ulak.actions.directory.channels())[0].id, clock.now() + 3_600_000)
        await advance(ulak, 3601)
        runs = [await told.look(run["run_id"]) for run in runs]
    assert [states(run) for run in runs] == [["held"], ["held"]]
    assert len(channel.messages) == 1


def _fill_the_hour(tx, channel: int, at: int) -> None:
    tx.insert_rows(brakes.sql.add_spent, [(channel, brakes.hour_of(at), 1, 0)])


async def test_segments_of_sms_are_counted_too(make, world, channel):
    async with make(actions={"sms": {"segments_per_hour": 3}}) as ulak:
        told = world(ulak)
        plan = await told.ready({"channel_type": "sms", "body": "x" * 200}, channels=[("sms", "+905551112233")])
        runs = [await told.run(plan) for _ in range(2)]
    assert [states(run) for run in runs] == [["sent"], ["held"]]


def test_the_clock_of_these_tests_stands_in_the_morning():
    assert ManualClock().now() == int(datetime(2027, 1, 15, 8, tzinfo=UTC).timestamp() * 1000)
