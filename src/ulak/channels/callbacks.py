"""Posts of providers, for the door that takes them: verified by the settings' secrets, then read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ulak.channels.receipts import DeliveryReceipt, Tap
from ulak.channels.slack import read_slack, verify_slack
from ulak.channels.twilio import callback_url, read_twilio, verify_twilio
from ulak.channels.whatsapp import read_whatsapp, verify_whatsapp, whatsapp_challenge
from ulak.errors import NotFound
from ulak.secrets import reveal
from ulak.settings import Settings

Headers = Mapping[str, str]


class Callback(NamedTuple):
    receipts: list[DeliveryReceipt]
    taps: list[Tap]


class Callbacks:
    """`read` raises Unproven for what its provider did not sign, and Invalid for what can't be read."""

    def __init__(self, settings: Settings) -> None:
        self._channels = settings.channels
        self._twilio_url = callback_url(settings)
        self._readers: dict[str, Callable[[Headers, bytes, int], Callback]] = {
            "twilio": self._read_twilio,
            "whatsapp": self._read_whatsapp,
            "slack": self._read_slack,
        }

    def read(self, provider: str, headers: Headers, body: bytes, now: int) -> Callback:
        """One callback, in the provider's own form. The same one may come again."""
        if provider not in self._readers:
            raise NotFound(f"no receipts of {provider!r:.50}; there are: {', '.join(self._readers)}")
        return self._readers[provider](headers, body, now)

    def challenge(self, provider: str, query: Mapping[str, str]) -> str:
        """The answer to Meta's question whether the address is ours; no other provider asks."""
        if provider != "whatsapp":
            raise NotFound(f"{provider!r:.50} asks nothing; only whatsapp does")
        return whatsapp_challenge(reveal(self._channels.whatsapp.verify_token, "channels.whatsapp.verify_token"), query)

    def _read_twilio(self, headers: Headers, body: bytes, now: int) -> Callback:
        token = reveal(self._channels.sms.auth_token, "channels.sms.auth_token")
        return Callback(read_twilio(verify_twilio(token, self._twilio_url, headers, body), now), [])

    def _read_whatsapp(self, headers: Headers, body: bytes, now: int) -> Callback:
        verify_whatsapp(reveal(self._channels.whatsapp.app_secret, "channels.whatsapp.app_secret"), headers, body)
        return Callback(read_whatsapp(body), [])

    def _read_slack(self, headers: Headers, body: bytes, now: int) -> Callback:
        secret = reveal(self._channels.slack.signing_secret, "channels.slack.signing_secret")
        verify_slack(secret, headers, body, now)
        return Callback([], read_slack(body))
