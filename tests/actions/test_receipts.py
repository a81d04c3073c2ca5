"""Receipts: delivered ends a wait, undelivered goes on, and a repeat says nothing new."""

from __future__ import annotations

from tests.actions.conftest import states
from ulak import Transient
from ulak.actions import service
from ulak.channels.receipts import DeliveryReceipt
from ulak.testing import advance, drain

PUSH = {"channel_type": "push", "receipt_seconds": 30}


def receipt(status: str, name: str = "fcm:1", **more) -> DeliveryReceipt:
    return DeliveryReceipt(provider_id=name, status=status, at_millis=0, **more)


async def test_a_delivered_receipt_ends_the_wait_and_the_next_step_follows(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, {"channel_type": "push"}, channels=[("push", "a"), ("push", "b")]))
        assert await ulak.actions.take_receipts([receipt("delivered")]) == 1
        await ulak.actions.take_receipts([receipt("delivered")])
        await drain(ulak)
        run = await told.look(run["run_id"], after_seconds=60)
        executed = await told.topics("cinga.action.executed")
    assert states(run) == ["delivered", "sent"]
    assert channel.recipients == ["a", "a"]
    assert [event["data"]["delivery_status"] for event in executed] == ["delivered", "sent"]


async def test_an_undelivered_receipt_goes_to_the_next_channel_at_once(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, channels=[("push", "a"), ("push", "b")]))
        await ulak.actions.take_receipts([receipt("failed", code="FCM_UNDELIVERED", gone=True)])
        await drain(ulak)
        await ulak.actions.take_receipts([receipt("delivered", "fcm:2")])
        await drain(ulak)
        run = await told.look(run["run_id"])
        first, _ = await ulak.actions.directory.channels()
    assert channel.recipients == ["a", "b"]
    assert (run["state"], states(run)) == ("done", ["delivered"])
    assert first.verify_status == "failed"


async def test_an_undelivered_receipt_with_no_channel_left_fails_the_step(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, channels=[("push", "a")]))
        for _ in range(2):
            await ulak.actions.take_receipts([receipt("failed", code="FCM_UNDELIVERED")])
        await drain(ulak)
        run = await told.look(run["run_id"])
        (letter,) = await ulak.actions.dead_letters()
        failed, executed = await told.topics("cinga.action.failed"), await told.topics("cinga.action.executed")
    assert (run["state"], states(run), channel.recipients) == ("failed", ["failed"], ["a"])
    assert (letter.error_code, letter.reason) == ("FCM_UNDELIVERED", "non_retryable")
    assert ([one["error"]["error_code"] for one in failed], executed) == (["FCM_UNDELIVERED"], [])


async def test_a_step_that_nobody_tells_of_keeps_the_number_of_its_retries(make, world, channel):
    channel.answers = [Transient("busy", code="FCM_HTTP_503")]
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready(PUSH, channels=[("push", "a")]))
        await advance(ulak, 2)
        run = await told.look(run["run_id"], after_seconds=60)
    assert (states(run), run["steps"][0]["retry_count"]) == (["sent"], 1)


async def test_a_word_that_comes_after_delivered_changes_nothing(make, world):
    async with make(actions={"receipt_events": True}) as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({"channel_type": "push"}))
        for status in ("delivered", "sent", "failed", "delivered", "read"):
            await ulak.actions.take_receipts([receipt(status)])
        run = await told.look(run["run_id"])
        updates = await told.topics("cinga.action.receipts")
    assert (states(run), len(updates)) == (["delivered"], 1)


async def test_a_late_receipt_changes_the_step_and_is_told_if_that_is_switched_on(make, world):
    async with make(actions={"receipt_events": True}) as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({"channel_type": "push"}))
        for _ in range(2):
            await ulak.actions.take_receipts([receipt("read")])
        run = await told.look(run["run_id"])
        updates = await told.topics("cinga.action.receipts")
        executed = await told.topics("cinga.action.executed")
    assert states(run) == ["delivered"]
    assert [one["data"]["delivery_status"] for one in updates] == ["delivered"]
    assert [one["data"]["delivery_status"] for one in executed] == ["sent"]


async def test_receipts_of_nobodys_messages_are_nothing(make, monkeypatch):
    monkeypatch.setattr(service, "RECEIPT_LOOKS", 0)
    async with make() as ulak:
        assert await ulak.actions.take_receipts([receipt("delivered", "fcm:unknown")]) == 0


async def test_the_event_of_a_step_that_waited_for_its_receipt_has_the_attempts_time(make, world, channel, clock):
    channel.answers = [Transient("busy", code="FCM_HTTP_503")]
    channel.seconds = 0.042
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH, channels=[("push", "a")])
        await told.run(plan)
        await advance(ulak, 2)
        await ulak.actions.take_receipts([receipt("delivered", "fcm:2")])
        await told.run(plan)
        await advance(ulak, 60)
        executed = await told.topics("cinga.action.executed")
    assert [event["data"]["delivery_status"] for event in executed] == ["delivered", "sent"]
    assert [event["meta"]["process_ms"] for event in executed] == [42, 42]


async def test_a_failed_step_whose_last_channel_told_of_no_delivery_keeps_its_numbers(make, world, channel):
    channel.answers = [Transient("busy", code="FCM_HTTP_503")]
    channel.seconds = 0.042
    async with make() as ulak:
        told = world(ulak)
        await told.run(await told.ready(PUSH, channels=[("push", "a")]))
        await advance(ulak, 2)
        await ulak.actions.take_receipts([receipt("failed", "fcm:2", code="FCM_UNDELIVERED")])
        await drain(ulak)
        (failed,), (letter,) = await told.topics("cinga.action.failed"), await ulak.actions.dead_letters()
    assert (letter.retry_count, failed["meta"]["process_ms"]) == (1, 42)


async def test_an_undelivered_receipt_that_comes_again_is_told_once(make, world):
    async with make(actions={"receipt_events": True}) as ulak:
        told = world(ulak)
        await told.run(await told.ready(PUSH, channels=[("push", "a")]))
        for _ in range(2):
            await ulak.actions.take_receipts([receipt("failed", code="FCM_UNDELIVERED")])
        await drain(ulak)
        updates = await told.topics("cinga.action.receipts")
    assert [one["data"]["delivery_status"] for one in updates] == ["failed"]


async def test_a_step_that_was_sent_stays_sent_when_it_turns_out_undelivered(make, world):
    """It has had its executed event: no failed event, no dead letter; success counts it, and so does the directory."""
    async with make(actions={"receipt_events": True}) as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({"channel_type": "push", "on_failure": "stop"}, {"channel_type": "push"}))
        for _ in range(2):
            await ulak.actions.take_receipts([receipt("failed", code="FCM_UNDELIVERED", gone=True)])
        await drain(ulak)
        run = await told.look(run["run_id"])
        explained = [entry["line"] for entry in await ulak.actions.explain(run["run_id"])]
        letters, levels = await ulak.actions.dead_letters(), await ulak.actions.service_levels()
        (one,), watched = await ulak.actions.directory.channels(), await ulak.actions.watchdog()
        topics = {name: await told.topics(f"cinga.action.{name}") for name in ("executed", "failed", "receipts")}
    assert (run["state"], states(run), run["steps"][0]["error_code"]) == ("done", ["sent", "sent"], "FCM_UNDELIVERED")
    assert ([len(topics[name]) for name in ("executed", "failed")], letters) == ([2, 0], [])
    assert [update["data"]["delivery_status"] for update in topics["receipts"]] == ["failed"]
    assert [line for line in explained if "receipt" in line] == ["step 1: receipt: failed: FCM_UNDELIVERED"]
    assert (levels["success_rate"]["value"], levels["dlq_rate"]["value"]) == (0.5, 0.0)
    assert (one.verify_status, watched["difference"]) == ("failed", 0)


async def test_delivered_has_the_last_word_over_an_undelivered_receipt(make, world):
    async with make() as ulak:
        told = world(ulak)
        run = await told.run(await told.ready({"channel_type": "push"}))
        for status in ("failed", "delivered", "failed"):
            await ulak.actions.take_receipts([receipt(status)])
        run = await told.look(run["run_id"])
        levels = await ulak.actions.service_levels()
    assert (states(run), run["steps"][0]["error_code"]) == (["delivered"], None)
    assert levels["success_rate"]["value"] == 1.0
