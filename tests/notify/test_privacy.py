"""An error that a channel raises may quote the message; what is stored, listed and logged of it does not."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from ulak.channels.channel import Uncertain
from ulak.errors import Permanent, Throttled, Transient
from ulak.notify.model import Notification
from ulak.notify.privacy import without_private
from ulak.testing import drain

MESSAGE = Notification(
    notification_type="SMS",
    recipient="Ayşe Yılmaz",
    body="Merhaba GIZLIGOVDE,\nyour code is kod 482913",
    subject="Sipariş 77-Z",
    metadata={"orders": [{"number": "A-9931"}], "vip": True, "sum": 12345},
    data={"iban": "TR00 1111"},
)
SECRETS = ("Ayşe", "Yılmaz", "GIZLIGOVDE", "482913", "77-Z", "A-9931", "12345", "TR00")


class OddError(Exception):
    """Says the same whatever its arguments are."""

    def __str__(self) -> str:
        return "refused kod 482913"


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "said",
    [
        MESSAGE.body,
        repr(MESSAGE.body),
        "could not send to Ayşe Yılmaz: 'A-9931'",
        "code 482913 is no number, sum=12345",
        '{"text": "Merhaba GIZLIGOVDE,\\nyour code is kod 482913", "iban": "TR00 1111"}',
        "Sipariş 77-Z",
    ],
)
@pytest.mark.parametrize("kind", [ValueError, OSError, KeyError])
def test_texts_of_the_message_are_hidden_in_whatever_a_plug_in_raises(said, kind):
    told = without_private(kind(said), MESSAGE)
    assert kind.__name__ in f"{type(told).__name__}: {told}"  # a KeyError shows its argument's form, and is replaced
    assert [secret for secret in SECRETS if secret in str(told)] == []


def test_ordinary_words_stay():
    told = without_private(ValueError("the server said: your code is wrong, try 550 again"), MESSAGE)
    assert str(told) == "the server said: your code is wrong, try 550 again"


def test_our_own_failures_keep_their_class_and_code_and_name_the_destination():
    hook = Notification(
        notification_type="WEBHOOK", recipient="https://example.org:8443/T1/GIZLIYOL", body="Hallo 1234"
    )
    error = Throttled(
        "https://example.org:8443 answered 503 to Hallo 1234.", retry_after_seconds=7, code="WEBHOOK_HTTP_503"
    )
    told = without_private(error, hook)
    assert (told, told.code, told.retry_after_seconds) == (error, "WEBHOOK_HTTP_503", 7)
    assert str(told) == "https://example.org:8443 answered 503 to ***."


def test_an_error_that_says_what_it_likes_is_replaced():
    told = without_private(OddError(), MESSAGE)
    assert (type(told), str(told)) == (RuntimeError, "OddError: refused kod ***")
    mute = MuteError()
    assert without_private(mute, MESSAGE) is mute


@pytest.mark.parametrize("kind", [RuntimeError, Transient, Permanent, Uncertain])
async def test_what_a_channel_raises_is_stored_and_logged_without_the_message(make, channel, kind):
    channel.answers = [kind("no route for GIZLIGOVDE kod 482913 to Ayşe Yılmaz")] * 2
    async with make(channels={"sms": {"max_attempts": 1}}) as ulak:
        with capture_logs() as logs:
            identifier = await ulak.notify.send("SMS", "+905551112233", "GIZLIGOVDE kod 482913 to Ayşe Yılmaz")
            await drain(ulak)
        view = await ulak.notify.get(identifier)
    for shown in (str(view.detail), str(view.timeline), str(logs)):
        assert "482913" not in shown
        assert "GIZLI" not in shown
        assert "Yılmaz" not in shown


async def test_consumers_bear_their_name(make_in_memory, channel):
    channel.release = asyncio.Event()
    async with make_in_memory() as ulak:
        await ulak.notify.send("SMS", "+905551112233", "hello")
        await channel.begun.wait()
        assert "notification-consumer-sms" in {task.get_name() for task in asyncio.all_tasks()}
        channel.release.set()
        await drain(ulak)
