"""Quiet hours: however much is put off, all of it goes out merged, and what must not go twice does not."""

from __future__ import annotations

import pytest

from tests.actions.conftest import states
from ulak.actions.steps import digest
from ulak.channels.channel import RecipientGone, Uncertain
from ulak.testing import advance

NIGHT = "07:00-09:00"  # the clock of these tests stands at eight
PUSH = {"channel_type": "push", "body": "{{ n }}"}


@pytest.mark.parametrize("number", [5, 6])
async def test_what_one_message_has_no_place_for_goes_with_the_next(make, world, channel, monkeypatch, number):
    monkeypatch.setattr(digest, "MAX_MERGED", 2)
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, quiet_hours=NIGHT)
        runs = [await told.run(plan, variables={"n": n}) for n in range(number)]
        await advance(ulak, 3601)
        runs = [await told.look(run["run_id"]) for run in runs]
        watched = await ulak.actions.watchdog()
    assert channel.bodies == ["0\n\n1", "2\n\n3", "4\n\n5" if number == 6 else "4"]
    assert {run["state"] for run in runs} == {"done"}
    assert (watched["ended"], watched["difference"]) == (number, 0)


async def test_merged_steps_that_wait_for_a_receipt_are_not_merged_again(make, world, channel, monkeypatch):
    monkeypatch.setattr(digest, "MAX_MERGED", 2)
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "receipt_seconds": 30}, quiet_hours=NIGHT)
        runs = [await told.run(plan, variables={"n": n}) for n in range(3)]
        await advance(ulak, 3601)
        await advance(ulak, 31)
        runs = [await told.look(run["run_id"]) for run in runs]
    assert channel.bodies == ["0\n\n1", "2"]
    assert [states(run) for run in runs] == [["sent"]] * 3


async def test_a_merged_step_has_the_numbers_of_its_last_attempt(make, world, channel):
    channel.answers = [Uncertain("the line broke", code="FCM_TIMEOUT")]
    channel.seconds = 0.042
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, quiet_hours=NIGHT)
        runs = [await told.run(plan, variables={"n": n}) for n in range(2)]
        await advance(ulak, 3601)
        await advance(ulak, 2)
        runs = [await told.look(run["run_id"]) for run in runs]
        executed = await told.topics("cinga.action.executed")
    assert channel.bodies == ["0\n\n1", "0\n\n1"]
    assert [run["steps"][0]["retry_count"] for run in runs] == [1, 1]
    assert [event["meta"]["process_ms"] for event in executed] == [42, 42]


async def test_a_step_that_must_not_go_twice_waits_on_its_own_and_is_held(make, world, channel):
    channel.answers = [Uncertain("the line broke", code="FCM_TIMEOUT")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(
            await told.ready({**PUSH, "on_uncertain": "hold"}, quiet_hours=NIGHT), variables={"n": "once"}
        )
        assert (run["state"], states(run), channel.bodies) == ("accepted", ["waiting"], [])
        await advance(ulak, 3601)
        run = await told.look(run["run_id"], after_seconds=60)
    assert (channel.bodies, states(run)) == (["once"], ["held"])


async def test_a_merged_message_to_an_address_that_is_gone_is_tried_once(make, world, channel):
    channel.by_recipient["token-1"] = RecipientGone("no app there", code="FCM_UNREGISTERED")
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, quiet_hours=NIGHT)
        runs = [await told.run(plan, variables={"n": n}) for n in range(2)]
        await advance(ulak, 3601)
        runs = [await told.look(run["run_id"]) for run in runs]
        (one,) = await ulak.actions.directory.channels()
    assert (channel.bodies, one.verify_status) == (["0\n\n1"], "failed")
    assert [states(run) for run in runs] == [["failed"]] * 2
