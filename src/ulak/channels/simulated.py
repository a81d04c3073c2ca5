"""Channels that deliver nothing: they wait as long as a provider would, write a log line and say yes. For demos."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ulak.channels.channel import Message, NotificationType, Receipt, seconds_for
from ulak.errors import Transient
from ulak.log import get_logger

Sleep = Callable[[float], Awaitable[object]]

# How long a provider of each type takes, as the notification document has it.
DELAY_SECONDS = {NotificationType.EMAIL: 0.150, NotificationType.SMS: 0.100, NotificationType.PUSH: 0.120}
_OTHER_DELAY_SECONDS = 0.100

_log = get_logger("ulak.channels.simulated")


class Simulated:
    """Pretends to carry one type."""

    def __init__(
        self, notification_type: NotificationType, delay_seconds: float | None = None, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.name = f"simulated-{notification_type.lower()}"
        self._type = notification_type
        self._delay_seconds = _usual(notification_type) if delay_seconds is None else delay_seconds
        self._sleep = sleep

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == self._type

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._delay_seconds, "SIMULATED")
        await self._sleep(seconds)
        if seconds < self._delay_seconds:
            raise Transient("The simulated provider did not answer in time.", code="SIMULATED_TIMEOUT")
        # Sizes only: recipient, subject and body are personal.
        _log.info(
            "simulated delivery", id=message.id, type=self._type, attempt=message.attempt, body_chars=len(message.body)
        )
        return Receipt(provider_id=f"simulated:{message.idempotency_key}", detail={"simulated": True})

    async def close(self) -> None:
        """Nothing is held open."""


def _usual(notification_type: NotificationType) -> float:
    return DELAY_SECONDS.get(notification_type, _OTHER_DELAY_SECONDS)


def email(settings: Any) -> Simulated | None:
    return _pretend(NotificationType.EMAIL, settings.channels.email)


def sms(settings: Any) -> Simulated | None:
    return _pretend(NotificationType.SMS, settings.channels.sms)


def push(settings: Any) -> Simulated | None:
    return _pretend(NotificationType.PUSH, settings.channels.push)


def whatsapp(settings: Any) -> Simulated | None:
    return _pretend(NotificationType.WHATSAPP, settings.channels.whatsapp)


def slack(settings: Any) -> Simulated | None:
    return _pretend(NotificationType.SLACK, settings.channels.slack)


def _pretend(notification_type: NotificationType, section: Any) -> Simulated | None:
    return Simulated(notification_type, section.simulated_delay_seconds) if section.simulated else None
