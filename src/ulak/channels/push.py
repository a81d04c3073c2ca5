"""PUSH: a token of an app goes to FCM, the endpoint of a browser (a URL) to Web Push."""

from __future__ import annotations

from typing import Any

from ulak.channels.channel import Channel, Message, NotificationType, Receipt
from ulak.errors import Permanent


class PushChannel:
    name = "push"

    def __init__(self, apps: Channel | None, browsers: Channel | None) -> None:
        self._apps = apps
        self._browsers = browsers

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.PUSH

    async def handle(self, message: Message) -> Receipt:
        to_browser = "://" in message.recipient
        channel = self._browsers if to_browser else self._apps
        if channel is None:
            setting, code = ("vapid_private_key", "WEBPUSH") if to_browser else ("service_account", "FCM")
            why = f"No channels.push.{setting} is set, so nothing was sent."
            raise Permanent(why, code=f"{code}_NOT_CONFIGURED", unsent=True)
        return await channel.handle(message)

    async def close(self) -> None:
        for channel in (self._apps, self._browsers):
            if channel is not None:
                await channel.close()


def from_settings(settings: Any) -> PushChannel | None:
    section = settings.channels.push
    if section.simulated:
        return None
    from ulak.channels import fcm, webpush  # they bring much along, and few need them

    allow = tuple(settings.channels.webhook.allow)
    return PushChannel(fcm.from_section(section, allow), webpush.from_section(section, allow))
