"""Between the provider's yes and our commit: what may have arrived is marked, resent with the same key, or held."""

from __future__ import annotations

import asyncio

import pytest

from tests.notify.conftest import build
from ulak.channels.channel import Uncertain
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.testing import advance, drain

BROKEN = "the line broke after the message was sent"


async def test_by_default_an_uncertain_delivery_is_resent_with_the_same_key(make, channel):
    channel.answers = [Uncertain(BROKEN)]
    async with make() as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello")
        await drain(ulak)
        await advance(ulak, 60)
        view = await ulak.notify.get(identifier)
    assert (view.status, view.attempts, view.uncertain_attempts) == ("DELIVERED", 2, 1)
    assert [message.idempotency_key for message in channel.messages] == [str(identifier)] * 2


async def test_what_must_not_be_sent_twice_is_held_for_a_person(make, channel):
    channel.answers = [Uncertain(BROKEN)]
    async with make() as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "code 1234", on_uncertain="hold")
        await drain(ulak)
        await advance(ulak, 3600)
        view = await ulak.notify.get(identifier)
        assert (view.status, view.attempts, view.uncertain_attempts) == ("HELD", 1, 1)
        assert [held.id for held in await ulak.notify.list(status="HELD")] == [str(identifier)]
        assert len(channel.messages) == 1
        await ulak.notify.resend(identifier)
        await drain(ulak)
        assert (await ulak.notify.get(identifier)).status == "DELIVERED"
    assert [message.idempotency_key for message in channel.messages] == [str(identifier)] * 2


@pytest.mark.parametrize(("on_uncertain", "status"), [("resend", "WAITING"), ("hold", "HELD")])
async def test_the_death_of_a_process_makes_its_attempt_uncertain(make, channel, on_uncertain, status):
    channel.release = asyncio.Event()
    async with make() as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", on_uncertain=on_uncertain)
        await channel.begun.wait()
        # What a second process does when this one is silent for too long; this one then takes nothing more.
        ulak.loops.worker.claimer.stopping = True
        while await ulak.store.submit(RESCUE, Lost(ulak.store.owner, poison_deaths=5)):
            pass
        view = await ulak.notify.get(identifier)
        channel.release.set()
    assert (view.status, view.uncertain_attempts) == (status, 1)


@pytest.mark.parametrize(("on_uncertain", "status"), [("resend", "RETRYING"), ("hold", "HELD")])
async def test_a_delivery_that_a_stop_breaks_off_is_uncertain(tmp_path, channel, on_uncertain, status):
    channel.release = asyncio.Event()
    address = f"sqlite:///{tmp_path}/ulak.db"
    async with build(address, None, own=[channel], worker={"stop_grace_seconds": 0}) as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", on_uncertain=on_uncertain)
        await channel.begun.wait()
    async with build(address, None, work=False) as ulak:
        view = await ulak.notify.get(identifier)
    assert (view.status, view.uncertain_attempts) == (status, 1)


async def test_a_delivery_that_takes_too_long_is_uncertain(make_in_memory, channel):
    channel.release = asyncio.Event()
    async with make_in_memory(channels={"sms": {"timeout_seconds": 20}}) as ulak:
        identifier = await ulak.notify.send("SMS", "+905551112233", "Hello", on_uncertain="hold")
        await channel.begun.wait()
        ulak.clock.advance(21)
        ulak.loops.worker.watch()
        await drain(ulak)
        view = await ulak.notify.get(identifier)
    assert (view.status, view.uncertain_attempts) == ("HELD", 1)
