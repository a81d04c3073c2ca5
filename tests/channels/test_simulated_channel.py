"""The simulated channels: the documented delays, and a log without people in it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ulak.channels.channel import NotificationType
from ulak.channels.simulated import Simulated
from ulak.errors import Transient


class Sleeps(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [(NotificationType.EMAIL, 0.150), (NotificationType.SMS, 0.100), (NotificationType.PUSH, 0.120)],
)
async def test_each_type_takes_its_documented_time(write, kind, seconds):
    sleeps = Sleeps()
    receipt = await Simulated(kind, sleep=sleeps).handle(write())
    assert sleeps == [seconds]
    assert receipt.detail == {"simulated": True}
    assert receipt.provider_id == "simulated:key-1"


async def test_the_delay_can_be_chosen(write):
    sleeps = Sleeps()
    await Simulated(NotificationType.SMS, 0.0, sleep=sleeps).handle(write())
    assert sleeps == [0.0]


async def test_a_message_that_allows_less_time_than_the_provider_takes_fails_after_it(write):
    sleeps = Sleeps()
    with pytest.raises(Transient) as caught:
        await Simulated(NotificationType.EMAIL, sleep=sleeps).handle(write(timeout_seconds=0.05))
    assert (sleeps, caught.value.code) == ([0.05], "SIMULATED_TIMEOUT")


async def test_the_log_names_the_message_and_not_the_person(write):
    with capture_logs() as lines:
        await Simulated(NotificationType.EMAIL, sleep=Sleeps()).handle(write(body="meet me at noon"))
    [line] = lines
    assert line["id"] == write().id
    assert line["body_chars"] == 15
    assert not any(word in str(line) for word in ("ada@", "example.org", "noon", "Hello"))


def test_each_carries_its_own_type_only():
    sms = Simulated(NotificationType.SMS)
    assert sms.name == "simulated-sms"
    assert sms.can_handle("SMS")
    assert not sms.can_handle("EMAIL")


def test_a_message_does_not_print_what_it_says(write):
    text = repr(write(body="meet me at noon"))
    assert write().id in text
    assert not any(word in text for word in ("ada@", "noon", "Hello"))
