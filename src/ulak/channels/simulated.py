"""Channels that deliver nothing: they wait as long as a provider would, write a log line and say yes. For demos."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from ulak.channels.channel import Message, NotificationType, Receipt

Sleep = Callable[[float], Awaitable[object]]

# How long a provider of each type takes, as the notification document has it.
DELAY_SECONDS = {NotificationType.EMAIL: 0.150, NotificationType.SMS: 0.100, NotificationType.PUSH: 0.120}

_log = structlog.get_logger("ulak.channels.simulated")


class Simulated:
    """Pretends to carry one type."""

    def __init__(
        self, notification_type: NotificationType, delay_seconds: float | None = None, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.name = f"simulated-{notification_type.lower()}"
        self._type = notification_type
        self._delay_seconds = DELAY_SECONDS[notification_type] if delay_seconds is None else delay_seconds
        self._sleep = sleep

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == self._type

    async def handle(self, message: Message) -> Receipt:
        await self._sleep(self._delay_seconds)
        # Sizes only: recipient, subject and body are personal.
        _log.info(
            "simulated delivery", id=message.id, type=self._type, attempt=message.attempt, body_chars=len(message.body)
        )
        return Receipt(provider_id=f"simulated-{message.idempotency_key}", detail={"simulated": True})

    async def close(self) -> None:
        """Nothing is held open."""


def email(settings: Any) -> Simulated | None:
    section = settings.channels.email
    return Simulated(NotificationType.EMAIL, section.simulated_delay_seconds) if section.simulated else None


def sms(settings: Any) -> Simulated:
    return Simulated(NotificationType.SMS, settings.channels.sms.simulated_delay_seconds)


def push(settings: Any) -> Simulated:
    return Simulated(NotificationType.PUSH, settings.channels.push.simulated_delay_seconds)
