"""PUSH to browsers (RFC 8030): pywebpush encrypts, py-vapid signs, and our guarded client posts to the endpoint."""

from __future__ import annotations

import binascii
import math
from dataclasses import dataclass, field
from typing import Any

from py_vapid import Vapid02, VapidException
from pywebpush import WebPusher, WebPushException
from yarl import URL

from ulak import codec
from ulak.channels.channel import Message, NotificationType, Receipt, RecipientGone, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, refused
from ulak.channels.ssrf import AddressGuard, check_url
from ulak.clock import Clock, SystemClock
from ulak.errors import Failure, Misconfigured, Permanent
from ulak.secrets import reveal

PROVIDER = "WEBPUSH"
MAX_PAYLOAD_BYTES = 3993  # what is left of RFC 8291's 4096 after its own
MAX_TTL_SECONDS = 2_419_200
VALID_SECONDS = 43_200  # of a signature; a push service takes at most a day
_URGENCY = {"URGENT": "high", "HIGH": "high", "NORMAL": "normal", "LOW": "low"}


@dataclass(frozen=True, slots=True)
class WebPushOptions:
    private_key: str = field(repr=False)
    subject: str
    ttl_seconds: int = 86_400
    timeout_seconds: float = 15.0
    connections: int = 100
    allow: tuple[str, ...] = ()


class WebPushChannel:
    name = "webpush"

    def __init__(self, options: WebPushOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client = GuardedClient(AddressGuard(options.allow), connections=options.connections)
        self._vapid = _key(options.private_key)
        if not options.subject.startswith(("mailto:", "https://")):
            raise Misconfigured("channels.push.vapid_subject must be like mailto:ops@example.org or an https:// URL.")

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.PUSH

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, PROVIDER)
        url = check_url(message.recipient, PROVIDER)
        body = _encrypted(message)
        answer = await self._client.ask(url, body, self._headers(message, url), seconds, PROVIDER)
        if answer.status not in {200, 201, 202, 204}:
            raise self._refusal(answer)
        place = answer.headers.get("Location", "").rpartition("/")[2]
        return Receipt(f"webpush:{place or message.id}", {"status": answer.status})

    async def close(self) -> None:
        await self._client.close()

    def _headers(self, message: Message, url: URL) -> dict[str, str]:
        left = message.seconds_left
        ttl = self._options.ttl_seconds if left is None else math.floor(left)
        claims = {
            "aud": str(url.origin()),
            "sub": self._options.subject,
            "exp": self._clock.now() // 1000 + VALID_SECONDS,
        }
        try:
            signed: dict[str, str] = self._vapid.sign(claims)
        except VapidException:  # it knows no literal addresses of IPv6, which no push service has
            why = "The push endpoint is not one of a push service."
            raise Permanent(why, code="WEBPUSH_INVALID_URL", unsent=True) from None
        return {
            **signed,
            "TTL": str(min(ttl, MAX_TTL_SECONDS)),
            "Urgency": _URGENCY.get(message.priority, "normal"),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
        }

    def _refusal(self, answer: HttpAnswer) -> Failure:
        code = f"WEBPUSH_HTTP_{answer.status}"
        if answer.status in {404, 410}:
            return RecipientGone("The browser has ended this subscription; forget it.", code=code)
        if answer.status in {401, 403}:
            return Permanent(
                "The push service does not take our signature; the subscription belongs to another VAPID key.",
                code=code,
            )
        return refused(answer, "The push service", code, now=self._clock.now())


def _encrypted(message: Message) -> bytes:
    content = {"id": message.id, "title": message.subject, "body": message.body, "data": message.metadata}
    data = codec.encode(content)
    if len(data) > MAX_PAYLOAD_BYTES:
        raise Permanent(
            f"A push message has at most {MAX_PAYLOAD_BYTES} bytes, and this one {len(data)}; shorten it.",
            code="WEBPUSH_TOO_LONG",
            unsent=True,
        )
    keys = message.target_meta.get("keys")
    try:
        return bytes(WebPusher({"endpoint": message.recipient, "keys": keys}).encode(data)["body"])
    except (WebPushException, ValueError, TypeError, KeyError, AttributeError, binascii.Error):
        raise Permanent(
            "The subscription has no usable keys; give p256dh and auth in target_meta.keys, as the browser gave them.",
            code="WEBPUSH_INVALID_KEYS",
            unsent=True,
        ) from None


def _key(text: str) -> Any:
    try:
        return Vapid02.from_pem(text.encode()) if "-----" in text else Vapid02.from_string(text)
    except (ValueError, TypeError, VapidException, binascii.Error):
        raise Misconfigured(
            "channels.push.vapid_private_key is not a P-256 key; give PEM or base64url of the raw key."
        ) from None


def from_section(section: Any, allow: tuple[str, ...]) -> WebPushChannel | None:
    key = reveal(section.vapid_private_key, "channels.push.vapid_private_key")
    if not key:
        return None
    return WebPushChannel(
        WebPushOptions(
            private_key=key,
            subject=section.vapid_subject,
            ttl_seconds=section.ttl_seconds,
            timeout_seconds=section.timeout_seconds,
            connections=section.consumers,
            allow=allow,
        )
    )
