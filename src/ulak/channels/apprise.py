"""APPRISE: a recipient is an Apprise URL. That library dials by itself, past our guard, so only listed schemes pass."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from ulak.channels.channel import Message, Receipt, Uncertain, seconds_for
from ulak.errors import Misconfigured, Permanent, Transient

PROVIDER = "APPRISE"
# They call whatever host the recipient names: what the guard is there to prevent.
NEVER = frozenset({"json", "jsons", "xml", "xmls", "form", "forms", "apprise", "apprises", "syslog", "dbus", "glib"})


@dataclass(frozen=True, slots=True)
class AppriseOptions:
    schemes: frozenset[str]
    timeout_seconds: float = 15.0


class AppriseChannel:
    name = "apprise"

    def __init__(self, options: AppriseOptions) -> None:
        refused = sorted(options.schemes & NEVER)
        if refused:
            raise Misconfigured(
                f"channels.apprise.schemes has {', '.join(refused)}, which call any address; use WEBHOOK for that."
            )
        self._options = options
        self._library = _library()

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == "APPRISE"

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, PROVIDER)
        sender = self._library.Apprise()
        if self._scheme(message.recipient) not in self._options.schemes or not sender.add(message.recipient):
            raise Permanent(
                "The recipient is not an Apprise URL of an allowed scheme; see channels.apprise.schemes.",
                code="APPRISE_INVALID_URL",
                unsent=True,
            )
        try:
            async with asyncio.timeout(seconds):
                sent = await sender.async_notify(body=message.body, title=message.subject or "")
        except TimeoutError:
            raise Uncertain(
                "The service gave no answer in time; it may have the message.", code="APPRISE_TIMEOUT"
            ) from None
        if not sent:
            raise Transient("The service did not take the message.", code="APPRISE_REFUSED")
        return Receipt(f"apprise:{message.id}")

    async def close(self) -> None:
        """The library opens a connection per message, and closes it."""

    @staticmethod
    def _scheme(recipient: str) -> str:
        return recipient.partition("://")[0].lower()


def _library() -> Any:
    try:
        import apprise
    except ImportError:
        raise Misconfigured("channels.apprise needs the Apprise library: pip install 'ulak[apprise]'.") from None
    return apprise


def from_settings(settings: Any) -> AppriseChannel | None:
    section = settings.channels.apprise
    if not section.schemes:
        return None
    schemes = frozenset(scheme.lower() for scheme in section.schemes)
    return AppriseChannel(AppriseOptions(schemes, section.timeout_seconds))
