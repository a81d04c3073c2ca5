"""Notifications over providers: codes reach attempts and dead letters, a dark provider trips its breaker alone."""

from __future__ import annotations

import pytest

from tests.providers import twilio
from tests.providers.server import serving
from tests.providers.twilio import TwilioServer, twilio_error
from ulak.clock import to_datetime
from ulak.spine.units.dead_letters import Filter
from ulak.testing import advance, drain

LOOPBACK = {"webhook": {"allow": ("127.0.0.0/8",)}}


@pytest.fixture
async def server():
    async with serving(TwilioServer()) as made:
        yield made


@pytest.fixture
def channels(server):
    sms = {"account_sid": twilio.ACCOUNT, "auth_token": twilio.TOKEN, "sender": "+15005550006", "url": server.url}
    return {**LOOPBACK, "sms": {**sms, "slots_per_destination": 2}}


async def test_an_sms_is_sent_and_carries_the_providers_id(make, channels, server):
    async with make(channels=channels) as ulak:
        identifier = await ulak.notify.send("SMS", "+905550001122", "Hello")
        await drain(ulak)
        view = await ulak.notify.get(identifier)
    assert (view.status, view.detail["providerId"]) == ("DELIVERED", f"twilio:SM{1:032d}")
    assert server.messages[0]["Body"] == "Hello"


async def test_the_code_of_a_failure_is_in_the_attempt_and_on_the_dead_letter(make, channels, server):
    server.script = [twilio_error(20003, 401), twilio_error(21211)]
    async with make(channels=channels) as ulak:
        identifier = await ulak.notify.send("SMS", "+905550001122", "Hello")
        await drain(ulak)
        await advance(ulak, 60)
        view = await ulak.notify.get(identifier)
        retried = [entry.detail.get("code") for entry in view.timeline if entry.word == "retried"]
        dead = await ulak.jobs.find_dead(Filter(code="TWILIO_INVALID_NUMBER"))
        assert (view.status, retried, dead) == ("FAILED", ["TWILIO_AUTH"], [view.job])
        assert await ulak.jobs.find_dead(Filter(code="TWILIO_AUTH")) == []


async def test_a_dark_provider_trips_its_own_breaker(make, channels, server):
    server.script = [twilio_error(20500, 500) for _ in range(50)]
    async with make(channels={**channels, "sms": {**channels["sms"], "slots_per_destination": 20}}) as ulak:
        for number in range(12):
            await ulak.notify.send("SMS", f"+90555000{number:04d}", "Hello")
        await ulak.notify.send("PUSH", "device", "Hello")
        await drain(ulak)
        await advance(ulak, 6)
        assert [one.destination for one in ulak.loops.breakers.stopping()] == ["provider:twilio"]
        assert (await ulak.notify.list(notification_type="PUSH"))[0].status == "DELIVERED"


async def test_messages_that_no_provider_would_take_do_not_hide_that_it_is_dark(make, channels, server):
    server.script = [twilio_error(20500, 500) for _ in range(10)]
    async with make(channels=channels) as ulak:
        for _ in range(10):
            await ulak.notify.send("SMS", "+905550001122", "Hello")
            await drain(ulak)
            await ulak.notify.send("SMS", "+905550001122", "x" * 1601)
            await drain(ulak)
        assert [one.destination for one in ulak.loops.breakers.stopping()] == ["provider:twilio"]


async def test_as_installed_all_of_them_are_simulated(make_in_memory):
    async with make_in_memory() as ulak:
        sent = [await ulak.notify.send(name, "someone", "Hi") for name in ("SMS", "PUSH", "WHATSAPP", "SLACK")]
        sent.append(await ulak.notify.send("EMAIL", "someone@example.org", "Hi"))
        await drain(ulak)
        views = [await ulak.notify.get(one) for one in sent]
    assert {view.status for view in views} == {"DELIVERED"}
    assert all(view.detail["detail"] == {"simulated": True} for view in views)


async def test_nothing_is_sent_after_its_expiry(make, channels, server):
    async with make(channels=channels) as ulak:
        expiry = ulak.clock.now() + 30_000
        server.script = [twilio_error(20500, 500)]
        identifier = await ulak.notify.send("SMS", "+905550001122", "Hello", expires_at=to_datetime(expiry))
        await drain(ulak)
        await advance(ulak, 31)
        assert (await ulak.notify.get(identifier)).status == "EXPIRED"
    assert [dict(one.headers).get("Content-Type") for one in server.asked] == ["application/x-www-form-urlencoded"]
    assert b"ValidityPeriod=" in server.asked[0].body
