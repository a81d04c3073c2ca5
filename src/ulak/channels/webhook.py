"""WEBHOOK: one signed POST (Standard Webhooks) to the recipient's URL. The answer's status decides, its body never."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from ulak.channels.channel import EndpointGone, Message, NotificationType, Receipt, seconds_for
from ulak.channels.client import GuardedClient, HttpAnswer, broken, refused
from ulak.channels.signature import Secret, sign
from ulak.channels.ssrf import AddressGuard, check_url
from ulak.clock import Clock, SystemClock, to_datetime
from ulak.codec import encode
from ulak.errors import Permanent
from ulak.spine.trace import HEADERS as TRACE_HEADERS
from ulak.spine.trace import headers_of

Secrets = Callable[[str], Sequence[Secret] | Awaitable[Sequence[Secret]]]
"""Finds the secrets of an endpoint by its URL. Without any, which only a test gives, the request leaves unsigned."""

PROVIDER = "WEBHOOK"
MAX_HEADERS = 20
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,2000}")
_OUR_HEADERS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection", "expect", "te"})


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    allow: tuple[str, ...] = ()
    connect_timeout_seconds: float = 5.0
    timeout_seconds: float = 15.0
    retry_after_cap_seconds: float = 3600.0
    connections: int = 100
    body_limit_bytes: int = 65_536
    ca_file: str | None = None


class WebhookChannel:
    name = "webhook"

    def __init__(
        self,
        options: WebhookOptions | None = None,
        *,
        secrets: Secrets = lambda _url: (),
        clock: Clock | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._options = options or WebhookOptions()
        self._secrets = secrets
        self._clock = clock or SystemClock()
        self._client = GuardedClient(
            AddressGuard(self._options.allow),
            connections=self._options.connections,
            connect_seconds=self._options.connect_timeout_seconds,
            body_limit_bytes=self._options.body_limit_bytes,
            ca_file=self._options.ca_file,
            resolver=resolver,
        )

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.WEBHOOK

    async def handle(self, message: Message) -> Receipt:
        seconds = seconds_for(message, self._options.timeout_seconds, PROVIDER)
        url = check_url(message.recipient)
        body = payload(message)
        now = to_datetime(self._clock.now())
        headers = address_headers(message.target_meta) | sign(
            await self._live_secrets(message.recipient, now), message.id, now, body
        )
        headers["Content-Type"] = "application/json"
        if message.trace is not None:  # which is newer than what somebody may have given with the address
            own = {name: value for name, value in headers.items() if name.lower() not in TRACE_HEADERS}
            headers = own | headers_of(message.trace)
        try:
            answer = await self._client.post(url, body, headers, seconds, read=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The original names the whole URL, which may hold a token.
            raise broken(error, str(url.origin()), PROVIDER) from None
        self._judge(answer, url)
        return Receipt(f"webhook:{message.id}", {"status": answer.status})

    async def close(self) -> None:
        await self._client.close()

    async def _live_secrets(self, url: str, now: datetime) -> Sequence[Secret]:
        found = self._secrets(url)
        secrets = await found if inspect.isawaitable(found) else found
        if secrets and not any(secret.is_live(now) for secret in secrets):
            raise Permanent(
                "Every secret of this webhook endpoint has expired; give it a new one and send again.",
                code="WEBHOOK_SECRET_EXPIRED",
                unsent=True,
            )
        return secrets

    def _judge(self, answer: HttpAnswer, url: URL) -> None:
        if 200 <= answer.status < 300:
            return
        place, code = str(url.origin()), f"WEBHOOK_HTTP_{answer.status}"
        if answer.status == 410:
            raise EndpointGone(
                f"{place} answered 410 Gone: it wants no more messages, and the endpoint is switched off.", code=code
            )
        cap = self._options.retry_after_cap_seconds
        raise refused(answer, place, code, now=self._clock.now(), cap_seconds=cap)


def payload(message: Message) -> bytes:
    """The body that is signed and posted: the same bytes at every attempt, and without the recipient."""
    created_at = message.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if message.data is not None:
        return _written({"type": message.event_type, "timestamp": created_at, "data": message.data})
    content = {
        "id": message.id,
        "type": message.event_type or message.notification_type,
        "subject": message.subject,
        "body": message.body,
        "metadata": message.metadata,
        "createdAt": created_at,
    }
    return _written(content)


def _written(content: dict[str, Any]) -> bytes:
    try:
        return encode(content)
    except (TypeError, ValueError):
        raise Permanent(
            "The webhook can't be written: its text or metadata has values that JSON can't carry.",
            code="WEBHOOK_INVALID_CONTENT",
            unsent=True,
        ) from None


def address_headers(target_meta: Mapping[str, Any]) -> dict[str, str]:
    """The headers that the recipient's address asks for (`target_meta.headers`), checked: none of them is ours."""
    given = target_meta.get("headers") or {}
    sound = isinstance(given, dict) and len(given) <= MAX_HEADERS
    if not sound or not all(_is_free(name, value) for name, value in given.items()):
        raise Permanent(
            f"The headers in target_meta are at most {MAX_HEADERS} names with printable text, and none that Ulak sets.",
            code="WEBHOOK_INVALID_HEADER",
            unsent=True,
        )
    return dict(given)


def _is_free(name: Any, value: Any) -> bool:
    return (
        isinstance(value, str)
        and bool(_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value))
        and name.lower() not in _OUR_HEADERS
        and not name.lower().startswith("webhook-")
    )
