"""From acceptance to the end: deliveries, failures by class, order, times, cancelling, the bound."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest

from ulak import IllegalTransition, Invalid, NotFound, Permanent, Refused, Throttled, Transient, Unavailable
from ulak.channels.channel import Receipt
from ulak.clock import to_datetime
from ulak.testing import advance, drain


async def test_a_notification_is_delivered_and_its_life_can_be_read(make, channel):
    async with make() as ulak:
        identifier = await ulak.notify.send(
            "EMAIL", "ada@example.org", "Hello", subject="Hi", priority="HIGH", metadata={"order": 7}
        )
        assert (await ulak.notify.get(identifier)).status in {"WAITING", "SENDING", "DELIVERED"}
        await drain(ulak)
        view = await ulak.notify.get(identifier)
    assert view.status == "DELIVERED"
    assert (view.attempts, view.uncertain_attempts, view.priority) == (1, 0, "HIGH")
    assert [step.word for step in view.timeline] == ["accepted", "started", "done"]
    assert view.detail == {"channel": "scripted", "providerId": "provider-1"}
    (message,) = channel.messages
    assert (message.id, message.idempotency_key) == (str(identifier), str(identifier))
    assert (message.subject, message.body, message.metadata) == ("Hi", "Hello", {"order": 7})


async def test_a_transient_failure_is_tried_again_with_backoff(make, channel):
    channel.answers = [Transient("busy"), Transient("busy"), Receipt("at last")]
    async with make(channels={"email": {"retry_first_seconds": 10, "retry_factor": 2}}) as ulak:
        identifier = await ulak.notify.send("EMAIL", "ada@example.org", "Hello")
        await drain(ulak)
        view = await ulak.notify.get(identifier)
        assert (view.status, view.attempts) == ("RETRYING", 1)
        assert view.send_at >= to_datetime(ulak.clock.now() + 10_000)
        await advance(ulak, 13)
        await advance(ulak, 25)
        view = await ulak.notify.get(identifier)
    assert (view.status, view.attempts) == ("DELIVERED", 3)
    assert [step.word for step in view.timeline] == [
        "accepted", "started", "retried", "started", "retried", "started", "done",
    ]  # fmt: skip
    assert len({message.idempotency_key for message in channel.messages}) == 1


async def test_what_can_never_work_fails_at_once(make, channel):
    channel.answers = [Permanent("no such mailbox")]
    async with make() as ulak:
        identifier = await ulak.notify.send("EMAIL", "ada@example.org", "Hello")
        await drain(ulak)
        view = await ulak.notify.get(identifier)
        assert (view.status, view.attempts) == ("FAILED", 1)
        assert "no such mailbox" in view.detail


async def test_what_was_tried_too_often_is_dead(make, channel):
    channel.answers = [Transient("busy")] * 3
    async with make(channels={"sms": {"max_attempts": 3, "retry_first_seconds": 1, "retry_cap_seconds": 1}}) as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello")
        for _ in range(3):
            await advance(ulak, 5)
        view = await ulak.notify.get(identifier)
        assert (view.status, view.attempts) == ("DEAD", 3)


async def test_a_throttled_delivery_waits_as_long_as_it_was_told(make, channel):
    channel.answers = [Throttled("slow down", retry_after_seconds=90)]
    async with make() as ulak:
        identifier = await ulak.notify.send("PUSH", "device", "Hello")
        await drain(ulak)
        await advance(ulak, 80)
        assert (await ulak.notify.get(identifier)).status == "RETRYING"
        await advance(ulak, 11)
        assert (await ulak.notify.get(identifier)).status == "DELIVERED"


async def test_a_dead_notification_is_sent_again_under_its_own_id(make, channel):
    channel.answers = [Permanent("typo")]
    async with make() as ulak:
        identifier = await ulak.notify.send("EMAIL", "ada@example.org", "Hello")
        await drain(ulak)
        await ulak.notify.resend(identifier)
        await drain(ulak)
        view = await ulak.notify.get(identifier)
        with pytest.raises(IllegalTransition, match="only FAILED, DEAD or HELD"):
            await ulak.notify.resend(identifier)
    assert view.status == "DELIVERED"
    assert [message.idempotency_key for message in channel.messages] == [str(identifier)] * 2
    assert "redriven" in [step.word for step in view.timeline]


async def test_a_scheduled_notification_waits_for_its_time(make, channel):
    async with make() as ulak:
        at = to_datetime(ulak.clock.now()) + timedelta(hours=1)
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", send_at=at)
        await drain(ulak)
        assert (await ulak.notify.get(identifier)).status == "SCHEDULED"
        await advance(ulak, 3601)
        assert (await ulak.notify.get(identifier)).status == "DELIVERED"


async def test_what_comes_too_late_expires_undelivered(make, channel):
    channel.answers = [Transient("busy")]
    async with make(channels={"sms": {"retry_first_seconds": 60}}) as ulak:
        at = to_datetime(ulak.clock.now()) + timedelta(seconds=30)
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", expires_at=at)
        await drain(ulak)
        await advance(ulak, 100)
        assert (await ulak.notify.get(identifier)).status == "EXPIRED"
    assert len(channel.messages) == 1


async def test_one_order_key_is_one_line(make, channel):
    channel.answers = [Transient("busy")]
    async with make(channels={"email": {"retry_first_seconds": 5}}) as ulak:
        for body in ("1", "2", "3"):
            await ulak.notify.send("EMAIL", "ada@example.org", body, order_key="ada")
        await ulak.notify.send("EMAIL", "bob@example.org", "other")
        await drain(ulak)
        assert sorted(channel.bodies) == ["1", "other"]
        await advance(ulak, 10)
    assert [body for body in channel.bodies if body != "other"] == ["1", "1", "2", "3"]


async def test_the_urgent_go_first(make, channel):
    channel.release = asyncio.Event()
    async with make(channels={"email": {"consumers": 1}}) as ulak:
        await ulak.notify.send("EMAIL", "ada@example.org", "first")
        await channel.begun.wait()
        for body, priority in (("low", "LOW"), ("normal", "NORMAL"), ("urgent", "URGENT"), ("high", "HIGH")):
            await ulak.notify.send("EMAIL", "ada@example.org", body, priority=priority)
        channel.release.set()
        await drain(ulak)
    assert channel.bodies == ["first", "urgent", "high", "normal", "low"]


async def test_a_waiting_notification_is_cancelled_at_once(make, channel):
    async with make() as ulak:
        at = to_datetime(ulak.clock.now()) + timedelta(hours=1)
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", send_at=at)
        assert await ulak.notify.cancel(identifier) == "CANCELLED"
        assert (await ulak.notify.get(identifier)).status == "CANCELLED"
        with pytest.raises(IllegalTransition, match="CANCELLED already"):
            await ulak.notify.cancel(identifier)
        await advance(ulak, 3601)
    assert channel.messages == []


async def test_a_delivery_under_way_is_cancelled_and_not_tried_again(make_in_memory, channel):
    channel.release = asyncio.Event()
    async with make_in_memory() as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello")
        await channel.begun.wait()
        assert (await ulak.notify.get(identifier)).status == "SENDING"
        assert await ulak.notify.cancel(identifier) == "CANCELLING"
        await drain(ulak)
        assert (await ulak.notify.get(identifier)).status == "CANCELLED"
    assert len(channel.messages) == 1


async def test_at_the_bound_a_notification_is_refused_or_waits_by_policy(make_in_memory, channel):
    async with make_in_memory(notify={"capacity": 2, "admission": "reject"}, work=False) as ulak:
        for text in ("1", "2"):
            await ulak.notify.send("SMS", "+905551112233", text)
        with pytest.raises(Refused, match="bound of 2") as refusal:
            await ulak.notify.send("SMS", "+905551112233", "3")
        assert refusal.value.retry_after_seconds
        await ulak.notify.send("EMAIL", "ada@example.org", "a channel that is full refuses no other")


async def test_a_producer_that_blocks_goes_on_when_there_is_capacity(make_in_memory, channel):
    channel.release = asyncio.Event()
    async with make_in_memory(notify={"capacity": 1}) as ulak:
        await ulak.notify.send("SMS", "+905551112233", "1")
        second = asyncio.create_task(ulak.notify.send("SMS", "+905551112233", "2"))
        await channel.begun.wait()
        assert not second.done()
        channel.release.set()
        await second
        await drain(ulak)
    assert channel.bodies == ["1", "2"]


@pytest.mark.parametrize("further", [{}, {"reference": "order-7"}, {"idempotency_key": "k"}])
async def test_a_caller_says_how_long_it_waits_at_the_bound(make_in_memory, channel, further):
    channel.release = asyncio.Event()
    async with make_in_memory(notify={"capacity": 1, "admission": "wait", "wait_seconds": 3600}) as ulak:
        await ulak.notify.send("SMS", "+905551112233", "1")
        await channel.begun.wait()
        with pytest.raises(Refused):
            await ulak.notify.send("SMS", "+905551112233", "2", wait_seconds=0, **further)
        for_a_time = asyncio.create_task(ulak.notify.send("SMS", "+905551112233", "2", wait_seconds=7, **further))
        for_ever = asyncio.create_task(ulak.notify.send("SMS", "+905551112233", "3", wait_seconds=math.inf))
        while sum(map(len, ulak.loops.gate._waiting.values())) < 2:
            await asyncio.sleep(0)
        ulak.clock.advance(7)
        with pytest.raises(Refused):
            await for_a_time
        ulak.clock.advance(86_400)
        assert not for_ever.done()
        channel.release.set()
        await for_ever
        await drain(ulak)
    assert channel.bodies == ["1", "3"]


async def test_a_plug_in_brings_its_own_type(make_in_memory, channel):
    async with make_in_memory() as ulak:
        await ulak.notify.send("SCRIPTED", "anybody", "Hello")
        await drain(ulak)
        with pytest.raises(Invalid, match="notificationType must be one of"):
            await ulak.notify.send("PIGEON", "anybody", "Hello")
    assert channel.bodies == ["Hello"]


async def test_a_list_is_filtered_and_continued(make, channel):
    channel.answers = [Permanent("no"), Receipt(), Receipt(), Permanent("no"), Receipt()]
    async with make() as ulak:
        made = []
        for number in range(5):
            made.append(str(await ulak.notify.send("EMAIL", "ada@example.org", str(number))))
            await drain(ulak)
        made.append(str(await ulak.notify.send("SMS", "+905551112233", "sms")))
        await drain(ulak)
        newest = made[::-1]
        assert [view.id for view in await ulak.notify.list()] == newest
        assert [view.id for view in await ulak.notify.list(notification_type="SMS")] == newest[:1]
        assert [view.id for view in await ulak.notify.list(status="FAILED")] == [made[3], made[0]]
        assert await ulak.notify.list(status="HELD") == []
        page = await ulak.notify.page(status="DELIVERED", notification_type="EMAIL", before=None, limit=2)
        assert [view.id for view in page.views] == [made[4], made[2]]
        first = await ulak.notify.list(limit=4)
        rest = await ulak.notify.list(before=first[-1].id)
        assert [view.id for view in [*first, *rest]] == newest


async def test_wrong_filters_are_told_by_field(make_in_memory):
    async with make_in_memory(work=False) as ulak:
        for wrong in ({"status": "GONE"}, {"notification_type": "PIGEON"}, {"before": "x"}, {"limit": 501}):
            with pytest.raises(Invalid) as refusal:
                await ulak.notify.list(**wrong)
            assert refusal.value.fields


async def test_an_unknown_notification_is_told(make):
    async with make(work=False) as ulak:
        for identifier in ("not-an-id", "0190a1b2-c3d4-8e5f-a6b7-756c616b0001", "0ca0d6db-9140-8000-8000-0000756c616b"):
            with pytest.raises(NotFound):
                await ulak.notify.get(identifier)


async def test_an_edited_dead_letter_that_is_no_notification_fails_and_is_still_listed(make_in_memory, channel):
    channel.answers = [Permanent("typo")]
    async with make_in_memory() as ulak:
        identifier = await ulak.notify.send("EMAIL", "ada@example.org", "Hello")
        await drain(ulak)
        job = (await ulak.notify.get(identifier)).job
        await ulak.jobs.edit(job, {"something": "else"})
        await ulak.notify.resend(identifier)
        await drain(ulak)
        (view,) = await ulak.notify.list()
    assert (view.status, view.recipient) == ("FAILED", "")


async def test_nothing_is_accepted_while_stopping(make_in_memory, channel):
    ulak = make_in_memory()
    async with ulak:
        notify = ulak.notify
        ulak.loops.gate.close()
        with pytest.raises(Unavailable, match="stopping"):
            await notify.send("SMS", "+905551112233", "late")


async def test_failures_and_times_are_counted_by_handler_and_class(make_in_memory, channel):
    channel.answers = [Transient("busy"), Permanent("no"), ValueError("a bug")]
    async with make_in_memory() as ulak:
        for body in ("1", "2", "3", "4"):
            await ulak.notify.send("EMAIL", "ada@example.org", body)
        await drain(ulak)
        counters, times = ulak.telemetry.counters, ulak.telemetry.histograms
    assert counters[("notify_failures", "notify.email", ("scripted", "transient"))] == 2
    assert counters[("notify_failures", "notify.email", ("scripted", "permanent"))] == 1
    assert sum(times[("notify_handle_seconds", "notify.email", "scripted")].counts) == 4


async def test_a_delivery_is_measured_by_the_clock_that_ulak_was_given(make_in_memory, channel):
    channel.release = asyncio.Event()
    async with make_in_memory() as ulak:
        await ulak.notify.send("EMAIL", "ada@example.org", "Hello")
        await channel.begun.wait()
        ulak.clock.advance(2)
        channel.release.set()
        await drain(ulak)
        assert ulak.telemetry.histograms[("notify_handle_seconds", "notify.email", "scripted")].total == 2
