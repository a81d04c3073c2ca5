"""From a request to its end: order, repeats, retries, fallbacks, conditions, delays, what the topics get."""

from __future__ import annotations

import pytest

from tests.actions.conftest import states
from ulak import Conflict, Invalid, NotFound, Permanent, Refused, Transient
from ulak.actions.bound import Bound
from ulak.actions.model import MAX_NUMBER
from ulak.channels.channel import EndpointGone, Receipt
from ulak.errors import Throttled
from ulak.testing import advance, drain

PUSH = {"channel_type": "push"}
AUDIT = {"channel_type": "audit"}


async def test_steps_run_in_order_and_each_has_one_event(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "Hi {{ name }}"}, {"channel_type": "downlink", "body": "OFF"}, AUDIT)
        run = await told.run(plan, variables={"name": "Ada"}, stream_id=7, group_id=12, rule_id=114)
        executed = await told.topics("cinga.action.executed")
        downlinks = await told.topics("cinga.downlink.requested")
    assert (run["state"], states(run)) == ("done", ["sent", "handed_over", "sent"])
    assert channel.bodies == ["Hi Ada"]
    assert [event["data"]["step_order"] for event in executed] == [1, 2, 3]
    assert executed[0]["context"] == {"device_id": "D1", "stream_id": 7}
    assert executed[0]["data"] == {
        "group_id": 12,
        "rule_id": 114,
        "action_plan_id": plan,
        "step_order": 1,
        "channel_type": "push",
        "delivery_status": "sent",
        "provider_message_id": "fcm:1",
    }
    assert [event["data"]["body"] for event in downlinks] == ["OFF"]
    assert executed[1]["data"]["delivery_status"] == "handed_over"


async def test_a_repeat_is_the_first_run_and_another_plan_is_a_conflict(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan, other = await told.ready(PUSH), await told.plan(AUDIT)
        asked = {"data": {"action_plan_id": plan, "evaluation_key": "e"}}
        first, again = await ulak.actions.accept(asked), await ulak.actions.accept(asked)
        await drain(ulak)
        with pytest.raises(Conflict):
            await ulak.actions.accept({"data": {"action_plan_id": other, "evaluation_key": "e"}})
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (first.run_id, first.trace_id) == (again.run_id, again.trace_id)
    assert len(channel.messages) == 1


async def test_a_plan_under_the_largest_id_leaves_ids_for_others(make, world):
    async with make() as ulak:
        told = world(ulak)
        form = {"name": "Pump", "steps": [{"step_order": 1, **AUDIT}]}
        await ulak.actions.plans.put(MAX_NUMBER, form)
        await ulak.actions.plans.put(1, form)
        plan = await told.plan(AUDIT)
        assert plan == 2
        assert (await told.run(plan))["state"] == "done"


async def test_an_unknown_plan_is_named(make):
    async with make() as ulak:
        with pytest.raises(Invalid) as caught:
            await ulak.actions.request(1 << 40, "e")
    assert list(caught.value.fields) == [("data.action_plan_id", "is not the id of an action plan")]


async def test_a_transient_failure_is_tried_again_after_1_5_and_15_seconds(make, world, channel):
    channel.answers = [Transient("busy", code="FCM_HTTP_503")] * 3
    async with make(actions={"push": {"retries": 3}}) as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH))
        assert (run["state"], states(run)) == ("running", ["sending"])
        sent = [len(channel.messages)]
        for seconds in (1.2, 5.6, 16.6):
            await advance(ulak, seconds)
            sent.append(len(channel.messages))
        run = await told.look(run["run_id"])
        executed = await told.topics("cinga.action.executed")
    assert sent == [1, 2, 3, 4]
    assert (run["state"], run["steps"][0]["retry_count"]) == ("done", 3)
    assert len(executed) == 1
    assert len({message.idempotency_key for message in channel.messages}) == 1


async def test_when_retries_are_used_up_the_step_fails_with_a_dead_letter(make, world, channel):
    channel.by_recipient["token-1"] = Transient("busy", code="FCM_HTTP_503")
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH))
        for seconds in (1.2, 5.6):
            await advance(ulak, seconds)
        run = await told.look(run["run_id"])
        (failed,) = await told.topics("cinga.action.failed")
        (letter,) = await told.topics("cinga.dlq.action")
        (listed,) = await ulak.actions.dead_letters(error_code="FCM_HTTP_503", reason="retry_exhausted")
        assert await ulak.actions.dead_letters(reason="non_retryable") == []
        causes = await ulak.actions.causes()
    assert len(channel.messages) == 3  # push has two retries
    assert (run["state"], states(run), run["steps"][0]["retry_count"]) == ("failed", ["failed"], 2)
    assert failed["error"]["failed_stage"] == "action_execute"
    assert (failed["error"]["error_code"], failed["error"]["retryable"]) == ("FCM_HTTP_503", True)
    assert (letter["reason"], letter["retry_count"], letter["run_id"]) == ("retry_exhausted", 2, run["run_id"])
    assert letter["id"] == listed.id
    assert [(cause["error_code"], cause["number"]) for cause in causes] == [("FCM_HTTP_503", 1)]


async def test_a_final_failure_moves_on_to_the_next_channel_with_its_own_retries(make, world, channel):
    channel.by_recipient = {"token-1": Permanent("no", code="FCM_INVALID"), "token-2": Transient("busy", code="FCM_X")}
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, channels=[("push", "token-1"), ("push", "token-2"), ("push", "token-3")])
        run = await told.run(plan)
        for seconds in (1.2, 5.6, 1):
            await advance(ulak, seconds)
        run = await told.look(run["run_id"])
        executed = await told.topics("cinga.action.executed")
        assert await told.topics("cinga.action.failed") == []
        lines = [entry["line"] for entry in await ulak.actions.explain(run["run_id"])]
    assert channel.recipients == ["token-1", "token-2", "token-2", "token-2", "token-3"]
    assert (run["state"], run["steps"][0]["retry_count"], len(executed)) == ("done", 0, 1)
    assert any("step 1: next: FCM_INVALID" in line for line in lines)
    assert any("step 1: retry" in line for line in lines)


async def test_a_provider_that_fails_opens_its_breaker_also_when_its_steps_go_on_elsewhere(make, world, channel):
    dark, sound = "https://dark.example.org/x", "https://sound.example.org/x"
    channel.by_recipient = {dark: Transient("down", code="WEBHOOK_HTTP_503")}
    async with make() as ulak:
        told = world(ulak)
        hooks = [("webhook", dark), ("webhook", sound)]
        plan = await told.ready({"channel_type": "webhook", "retries": 0}, channels=hooks)
        for _ in range(10):
            assert (await told.run(plan))["state"] == "done"
        breakers = {breaker.destination: breaker.state for breaker in ulak.loops.breakers.all()}
    assert breakers == {"https://dark.example.org": "open"}
    assert channel.recipients == [dark, sound] * 10


async def test_what_is_gone_is_not_tried_again_by_later_runs(make, world, channel):
    channel.by_recipient["token-1"] = EndpointGone("gone", code="FCM_UNREGISTERED")
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        await told.run(plan)
        second = await told.run(plan)
        (found,) = await ulak.actions.directory.channels()
        unreachable = await ulak.actions.directory.unreachable()
    assert found.verify_status == "failed"
    assert second["steps"][0]["error_code"] == "NO_VERIFIED_CHANNEL"
    assert len(channel.messages) == 1
    assert unreachable == [(1, "Ada")]


async def test_after_its_days_an_evaluation_is_a_new_one(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan, other = await told.ready(PUSH), await told.plan(AUDIT)
        first = await ulak.actions.request(plan, "e")
        await drain(ulak)
        await advance(ulak, 29.9 * 86_400)
        again = await ulak.actions.request(plan, "e")
        await advance(ulak, 0.2 * 86_400)
        fresh = await ulak.actions.request(other, "e")
        await drain(ulak)
    assert first == again
    assert fresh != first
    assert len(channel.messages) == 1


async def test_a_provider_that_asks_for_time_gets_it(make, world, channel):
    channel.answers = [Throttled("slow down", retry_after_seconds=30, code="FCM_QUOTA")]
    async with make() as ulak:
        told = world(ulak)
        await told.run(await told.ready(PUSH))
        await advance(ulak, 29)
        assert len(channel.messages) == 1
        await advance(ulak, 5)
        assert len(channel.messages) == 2


async def test_a_missing_variable_is_fatal_for_its_step_alone(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "body": "{{ level }}"}, {**PUSH, "body": "plain"}))
        (failed,) = await told.topics("cinga.action.failed")
        (letter,) = await told.topics("cinga.dlq.action")
    assert (run["state"], states(run)) == ("done", ["failed", "sent"])
    assert (failed["error"]["failed_stage"], failed["error"]["error_code"]) == ("template_render", "TEMPLATE_RENDER")
    assert letter["reason"] == "template_fatal"
    assert channel.bodies == ["plain"]


async def test_a_named_template_that_lacks_a_variable_is_fatal_too(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "body": None, "template": "welcome"}))
        (letter,) = await told.topics("cinga.dlq.action")
    assert (run["state"], letter["error_code"], letter["reason"]) == ("failed", "TEMPLATE_RENDER", "template_fatal")
    assert channel.messages == []


async def test_without_a_recipient_or_a_verified_channel_the_step_fails_at_target_resolve(make, world):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.plan(PUSH, PUSH)
        await told.route(plan, await told.person(("push", "token"), verified=False), 2)
        run = await told.run(plan)
        failed = await told.topics("cinga.action.failed")
    assert [step["error_code"] for step in run["steps"]] == ["NO_RECIPIENT", "NO_VERIFIED_CHANNEL"]
    assert {event["error"]["failed_stage"] for event in failed} == {"target_resolve"}
    assert run["state"] == "failed"


async def test_a_step_that_stops_the_plan_stops_it(make, world, channel):
    channel.answers = [Permanent("no", code="FCM_INVALID")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "on_failure": "stop"}, PUSH))
    assert (run["state"], states(run)) == ("failed", ["failed", "skipped"])
    assert len(channel.messages) == 1


async def test_a_false_condition_skips_its_step(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "condition": "level > 3 and variables.site == 'A'"}, {**PUSH, "body": "two"})
        low = await told.run(plan, variables={"level": 1, "site": "A"})
        high = await told.run(plan, variables={"level": 4, "site": "A"})
    assert (states(low), states(high)) == (["skipped", "sent"], ["sent", "sent"])


async def test_a_run_whose_steps_were_all_skipped_has_failed_and_costs_no_service_level(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({**PUSH, "condition": "level > 3"}), variables={"level": 1})
        explained = await ulak.actions.explain(run["run_id"])
        levels = await ulak.actions.service_levels()
        letters = await ulak.actions.dead_letters()
    assert (run["state"], states(run), letters) == ("failed", ["skipped"], [])
    assert explained[-1]["line"] == "run: end: the run is failed: every step was skipped"
    assert levels["success_rate"] == {"value": 1.0, "target": 0.99, "budget_left": 1.0}


async def test_a_delay_counts_from_the_end_of_the_step_before(make, world, channel):
    channel.answers = [Transient("busy")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, {**PUSH, "delay_seconds": 60}))
        await advance(ulak, 2)
        assert len(channel.messages) == 2
        await advance(ulak, 58)
        assert len(channel.messages) == 2
        run = await told.look(run["run_id"], after_seconds=3)
    assert (run["state"], len(channel.messages)) == ("done", 3)


async def test_a_run_keeps_the_version_that_it_began_with(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, {**PUSH, "delay_seconds": 60, "body": "old"})
        run = await told.run(plan)
        fresh, (_, second) = await ulak.actions.plans.put(
            plan, {"name": "Pump", "steps": [{"step_order": 1, "channel_type": "push", "body": "new"}]}
        )
        later = await told.run(plan)
        run = await told.look(run["run_id"], after_seconds=61)
    assert (fresh, second.version) == (False, 2)
    assert channel.bodies == ["b", "new", "old"]
    assert (run["plan_version"], later["plan_version"], run["state"]) == (1, 2, "done")


async def test_routes_lead_to_profiles_of_no_device_or_of_the_requests(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.plan(PUSH)
        await told.route(plan, await told.person(("push", "other"), device_id="D2", priority=-5))
        await told.route(plan, await told.person(("push", "second"), priority=5))
        await told.route(plan, await told.person(("push", "first"), device_id="D1", priority=1))
        await told.run(plan)
    assert channel.recipients == ["first"]


async def test_without_a_route_the_devices_own_profiles_are_reached(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        await told.person(("push", "own"), device_id="D1")
        await told.person(("push", "others"), device_id="D2")
        await told.run(await told.plan(PUSH))
    assert channel.recipients == ["own"]


async def test_a_routes_channel_type_overrides_the_steps(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.plan(PUSH)
        person = await told.person(("push", "token"), ("sms", "+905551112233"))
        await told.route(plan, person, channel_type="sms")
        run = await told.run(plan)
        (event,) = await told.topics("cinga.action.executed")
    assert channel.recipients == ["+905551112233"]
    assert (run["steps"][0]["channel_type"], event["data"]["channel_type"]) == ("sms", "sms")


async def test_disabled_routes_profiles_and_channels_are_passed_over(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.plan(PUSH)
        one = await told.person(("push", "disabled-route"))
        await told.route(plan, one, enabled=False)
        await told.route(plan, await told.person(("push", "inactive"), status=False))
        await told.route(plan, await told.person(("push", "off"), ("push", "on")))
        (off,) = [each for each in await ulak.actions.directory.channels() if each.target == "off"]
        await ulak.actions.directory.amend_channel(off.id, {"enabled": False})
        await told.run(plan)
    assert channel.recipients == ["on"]


async def test_the_bound_of_unfinished_runs_refuses_and_opens_again(make, world, clock):
    async with make(actions={"capacity": 2}) as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "delay_seconds": 60})
        for _ in range(2):
            await told.ask(plan)
        with pytest.raises(Refused):
            await told.ask(plan)
        await advance(ulak, 61)
        await told.ask(plan)


async def test_accepts_that_a_count_can_not_see_yet_keep_their_places(clock):
    class Counting:
        def __init__(self):
            self.clock, self.committed = clock, 0

        async def read(self, *_):
            return self.committed

    store, bound = Counting(), Bound(3)
    for _ in range(3):
        await bound.admit(store, 1)
        clock.advance(1)
    with pytest.raises(Refused):
        await bound.admit(store, 1)
    store.committed = 1
    bound.settle(1, new=True)
    bound.settle(1, new=False)
    await bound.admit(store, 1)
    clock.advance(1)
    with pytest.raises(Refused):
        await bound.admit(store, 1)


async def test_a_repeat_is_the_first_run_at_the_bound_too(make, world):
    async with make(actions={"capacity": 1}) as ulak:
        told = world(ulak)
        plan, other = await told.plan({**AUDIT, "delay_seconds": 60}), await told.plan(AUDIT)
        first = await ulak.actions.request(plan, "e")
        with pytest.raises(Refused):
            await ulak.actions.request(plan, "f")
        assert await ulak.actions.request(plan, "e") == first
        with pytest.raises(Conflict):
            await ulak.actions.request(other, "e")


async def test_a_batch_is_judged_one_by_one(make, world):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        good = {"data": {"action_plan_id": plan, "evaluation_key": "e"}}
        verdicts = await ulak.actions.accept_batch(
            [good, good, {"data": {}}, b"{", {"data": {**good["data"], "action_plan_id": 99}}]
        )
    assert [type(verdict).__name__ for verdict in verdicts] == [
        "ActionAccepted", "ActionAccepted", "Invalid", "Invalid", "Conflict",
    ]  # fmt: skip
    assert sorted(verdict.duplicate for verdict in verdicts[:2]) == [False, True]


async def test_from_a_bus_what_http_would_refuse_ends_as_a_failed_event(make, world):
    async with make() as ulak:
        told = world(ulak)
        given = {
            "meta": {"trace_id": "act-1"},
            "context": {"device_id": "D1"},
            "data": {"action_plan_id": 99, "evaluation_key": "e"},
        }
        await ulak.actions.accept_batch([given], origin="kafka")
        await ulak.actions.keep_unreadable(b"\xff\x00", "cinga.action.requested", 3, 42)
        await ulak.actions.keep_unreadable(b"\xff\x00", "cinga.action.requested", 3, 42)
        (failed,) = await told.topics("cinga.action.failed")
        (dead,) = await told.topics("cinga.dlq.action")
    assert failed["error"]["failed_stage"] == "request_validate"
    assert (failed["meta"]["trace_id"], failed["context"]["device_id"]) == ("act-1", "D1")
    assert (failed["data"]["action_plan_id"], failed["data"]["step_order"], failed["data"]["channel_type"]) == (
        99,
        None,
        None,
    )
    assert (dead["reason"], dead["error_code"], dead["step_order"]) == ("poison", "REQUEST_UNREADABLE", None)


async def test_every_page_of_messages_but_the_last_has_some(make, world):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        for _ in range(5):
            await told.run(plan)
        await told.caught_up()
        seen, after, pages = [], 0, []
        while True:
            found, after = await ulak.actions.messages(topic="cinga.action.executed", after=after, limit=2)
            pages.append(len(found))
            seen += [one["seq"] for one in found]
            if not found:
                break
    assert (pages, seen) == ([2, 2, 1, 0], sorted(set(seen)))


async def test_runs_are_listed_newest_first_page_by_page_and_by_state(make, world, channel):
    channel.answers = [Permanent("no"), Receipt("a"), Receipt("b")]
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        runs = [(await told.run(plan))["run_id"] for _ in range(3)]
        first, following = await ulak.actions.runs(limit=2)
        second, end = await ulak.actions.runs(limit=2, after=following)
        failed, _ = await ulak.actions.runs(state="failed")
        with pytest.raises(Invalid):
            await ulak.actions.runs(state="lost")
        with pytest.raises(NotFound):
            await ulak.actions.run("0ca0d6db-9140-8000-8000-0000756c616b")
    assert [run["run_id"] for run in first + second] == runs[::-1]
    assert end is None
    assert [run["run_id"] for run in failed] == runs[:1]


async def test_levels_and_watchdog_agree_with_what_happened(make, world, channel):
    channel.answers = [Permanent("no")]
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        for _ in range(4):
            await told.run(plan)
        await told.ask(await told.ready({**PUSH, "delay_seconds": 60}))
        levels, watched = await ulak.actions.service_levels(), await ulak.actions.watchdog()
    assert levels["success_rate"]["value"] == pytest.approx(0.75)
    assert levels["channels"]["push"]["dlq_rate"]["value"] == pytest.approx(0.25)
    assert watched == {"accepted": 5, "ended": 4, "waiting": 1, "difference": 0}
