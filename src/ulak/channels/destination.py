"""A delivery's destination, which has slots and a breaker that are shared by every room that sends there."""

from __future__ import annotations

from typing import Any

from ulak.channels.ssrf import normal_url
from ulak.errors import Permanent

NOWHERE = "nowhere"  # of an address that is not a URL, which no channel will call


class Destinations:
    """The destination of each type. A type that is simulated, or that needs nobody else, has none."""

    def __init__(self, settings: Any) -> None:
        channels = settings.channels
        sections = {"SMS": channels.sms, "PUSH": channels.push, "WHATSAPP": channels.whatsapp, "SLACK": channels.slack}
        names = {"SMS": "twilio", "PUSH": "fcm", "WHATSAPP": "whatsapp", "SLACK": "slack"}
        self._slots = {name: one.slots_per_destination for name, one in sections.items() if not one.simulated}
        self._slots["WEBHOOK"] = channels.webhook.slots_per_destination
        self._providers = {name: f"provider:{names[name]}" for name in self._slots if name in names}
        if not channels.email.simulated:
            self._slots["EMAIL"] = channels.email.slots_per_destination
            self._providers["EMAIL"] = f"smtp://{channels.email.host}:{channels.email.port}"

    @property
    def types(self) -> frozenset[str]:
        """The types that have one."""
        return frozenset(self._slots)

    def find(self, notification_type: str, recipient: str) -> tuple[str, int] | None:
        """A job's key, and how many of that key run at once.

        Where a recipient is an address on the web, its server is the destination; otherwise the provider is.
        """
        slots = self._slots.get(notification_type)
        if slots is None:
            return None
        provider = self._providers.get(notification_type)
        is_url = "://" in recipient and notification_type != "EMAIL"  # which a mail address may contain, too
        return (server_of(recipient) if provider is None or is_url else provider), slots


def server_of(url: str) -> str:
    """Whose server it is: scheme, host and port. However they are spelt, one server is one destination."""
    try:
        return "/".join(normal_url(url).split("/", 3)[:3])[:200]
    except Permanent:
        return NOWHERE
