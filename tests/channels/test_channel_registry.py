"""Finding the channel for a type, and finding the channels."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from structlog.testing import capture_logs

from ulak import Ulak
from ulak.channels.channel import Channel, Message, Receipt
from ulak.channels.registry import GROUP, Registry, discover
from ulak.errors import Misconfigured
from ulak.settings import Settings


class Fake:
    def __init__(self, name: str, *types: str) -> None:
        self.name = name
        self.types = types
        self.asked = 0
        self.closed = False

    def can_handle(self, notification_type: str) -> bool:
        self.asked += 1
        return notification_type in self.types

    async def handle(self, message: Message) -> Receipt:
        return Receipt(self.name)

    async def close(self) -> None:
        self.closed = True


def make_nothing(settings: Any) -> None:
    """A factory that leaves its channel switched off."""


def make_rubbish(settings: Any) -> Any:
    return "not a channel"


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def test_the_first_channel_that_can_is_taken():
    first, second = Fake("first", "EMAIL", "SMS"), Fake("second", "SMS", "PUSH")
    registry = Registry([first, second])
    assert registry.find("SMS") is first
    assert registry.find("PUSH") is second


def test_a_channel_is_asked_once_per_type():
    channel = Fake("one", "SMS")
    registry = Registry([channel])
    assert registry.find("SMS") is registry.find("SMS")
    assert channel.asked == 1


def test_a_type_of_a_plug_in_needs_no_change_elsewhere():
    assert Registry([Fake("fax", "FAX")]).find("FAX").name == "fax"


def test_a_type_that_nobody_carries_is_a_clear_error():
    registry = Registry([Fake("first", "EMAIL"), Fake("second", "SMS")])
    with pytest.raises(Misconfigured, match=r"'FAX'.*first, second.*docs/howto/add-a-channel.md"):
        registry.find("FAX")
    with pytest.raises(Misconfigured, match="none"):
        Registry([]).find("EMAIL")


async def test_closing_the_registry_closes_every_channel():
    channels = [Fake("a"), Fake("b")]
    await Registry(channels).close()
    assert all(channel.closed for channel in channels)


async def test_the_built_in_channels_come_in_by_the_same_door():
    registry = Ulak(settings=Settings()).channels
    assert all(isinstance(channel, Channel) for channel in registry)
    assert registry.names == [
        *(f"simulated-{name}" for name in ("email", "sms", "push", "whatsapp", "slack")),
        "webhook",
    ]
    assert registry.find("WEBHOOK").name == "webhook"


async def test_a_channel_of_the_users_own_comes_first():
    own = Fake("mine", "SMS")
    async with Ulak("memory:", channels=[own]) as ulak:
        assert ulak.channels.find("SMS") is own
    assert own.closed


@pytest.mark.parametrize("own", ["not a channel", Fake])
def test_an_own_channel_that_is_not_one_is_refused(own):
    with pytest.raises(Misconfigured, match=r"channels=\[.*it needs name, can_handle, handle and close"):
        _ = Ulak("memory:", channels=[own]).channels


async def test_an_own_channel_names_its_types_or_is_named_after_one():
    with capture_logs() as logs:
        async with Ulak("memory:", channels=[Fake("mine", "FAX", "TELEX"), Fake("pager")]) as ulak:
            assert {"notify.fax", "notify.telex"} <= set(ulak.handlers.kinds())
            assert "notify.pager" not in ulak.handlers.kinds()
            await ulak.notify.send("FAX", "anybody", "Hello")
    unheard = [line["channel"] for line in logs if line["event"] == "channel_without_type"]
    assert unheard == ["pager"]


async def test_all_that_is_discovered_is_closed():
    registry = Registry(discover(Settings()))
    await registry.close()


async def test_real_mail_replaces_simulated_mail_by_a_setting():
    settings = Settings(channels={"email": {"simulated": False, "password": "x", "username": "u"}})
    registry = Registry(discover(settings))
    assert registry.find("EMAIL").name == "email"
    assert "simulated-email" not in registry.names
    await registry.close()


def test_a_factory_may_leave_its_channel_out():
    here = make_nothing.__module__
    assert discover(None, built_in=[point("off", f"{here}:make_nothing")]) == []


@pytest.mark.parametrize("value", ["no.such.module:make", "ulak.channels.registry:no_such_name"])
def test_a_channel_that_can_not_be_loaded_is_named(value):
    with pytest.raises(Misconfigured, match="'broken'"):
        discover(None, built_in=[point("broken", value)])


def test_what_is_no_channel_is_refused():
    with pytest.raises(Misconfigured, match="can_handle"):
        discover(None, built_in=[point("rubbish", f"{make_rubbish.__module__}:make_rubbish")])


async def test_a_channel_that_hangs_or_fails_at_its_end_keeps_nobody_from_theirs(monkeypatch):
    class Hanging(Fake):
        async def close(self) -> None:
            await asyncio.Event().wait()

    class Failing(Fake):
        async def close(self) -> None:
            raise OSError("the line is dead")

    monkeypatch.setattr("ulak.channels.registry.GOODBYE_SECONDS", 0.01)
    last = Fake("last")
    with capture_logs() as logs:
        await Registry([Hanging("hanging"), Failing("failing"), last]).close()
    assert last.closed
    assert {entry["channel"] for entry in logs} == {"hanging", "failing"}
