"""WEBHOOK: one signed POST (Standard Webhooks) to the recipient's URL. The answer's status decides, its body never."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import inspect
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from ulak.channels.channel import EndpointGone, Message, NotificationType, Receipt, Uncertain
from ulak.channels.guard import Blocked, Guard, GuardedResolver
from ulak.channels.signature import Secret, sign
from ulak.clock import Clock, SystemClock, to_datetime, to_millis
from ulak.codec import encode
from ulak.errors import Failure, Permanent, Throttled, Transient

Secrets = Callable[[str], Sequence[Secret] | Awaitable[Sequence[Secret]]]
"""Finds the secrets of an endpoint by its URL. None at all: the request leaves unsigned."""

_LATER = frozenset({408, 425, 429})
_DRAIN_SECONDS = 1.0


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
        self._guard = Guard(self._options.allow)
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == NotificationType.WEBHOOK

    async def handle(self, message: Message) -> Receipt:
        url = self._guard.check_url(message.recipient)
        body = payload(message)
        now = to_datetime(self._clock.now())
        headers = sign(await self._live_secrets(message.recipient, now), message.id, now, body)
        try:
            status, retry_after = await self._post(url, body, headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _broken(error, url) from None  # the original names the whole URL, which may hold a token
        self._judge(status, retry_after, url)
        return Receipt(detail={"status": status})

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _live_secrets(self, url: str, now: datetime) -> Sequence[Secret]:
        found = self._secrets(url)
        secrets = await found if inspect.isawaitable(found) else found
        if secrets and not any(secret.is_live(now) for secret in secrets):
            raise Permanent("Every secret of this webhook endpoint has expired; give it a new one and send again.")
        return secrets

    async def _post(self, url: URL, body: bytes, headers: dict[str, str]) -> tuple[int, str | None]:
        async with self._open().post(url, data=body, headers=headers, allow_redirects=False) as response:
            # The answer is in. What follows is only courtesy: a body read to its end lets the connection be used again.
            if not response.content.is_eof():
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                    await _drain(response, self._options.body_limit_bytes)
            return response.status, response.headers.get("Retry-After")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        options = self._options
        connector = aiohttp.TCPConnector(
            limit=options.connections,
            resolver=GuardedResolver(self._guard, self._resolver),
            socket_factory=self._guard.open_socket,
            ssl=ssl.create_default_context(cafile=options.ca_file) if options.ca_file else True,
        )
        connect_seconds = min(options.connect_timeout_seconds, options.timeout_seconds)
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=options.timeout_seconds, connect=connect_seconds),
            headers={"Content-Type": "application/json", "User-Agent": "Ulak"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # the body is thrown away; a packed bomb stays packed
            trust_env=False,  # a proxy would dial for us, past the guard
        )

    def _judge(self, status: int, retry_after: str | None, url: URL) -> None:
        if 200 <= status < 300:
            return
        place = f"{url.scheme}://{url.host}"
        if status == 410:
            raise EndpointGone(f"{place} answered 410 Gone: it wants no more messages; disable the endpoint.")
        if 300 <= status < 400:
            raise Permanent(f"{place} answered {status}: redirects are not followed; register the final URL.")
        if status not in _LATER and status < 500:
            raise Permanent(f"{place} answered {status}: it does not take this message; ask its owner why.")
        seconds = self._wait_seconds(retry_after)
        if seconds is not None or status == 429:
            raise Throttled(f"{place} answered {status} and asks us to wait.", retry_after_seconds=seconds)
        raise Transient(f"{place} answered {status}; it is tried again.")

    def _wait_seconds(self, retry_after: str | None) -> float | None:
        """Retry-After as seconds, never more than the cap: a receiver can't park its messages with us for ever."""
        if retry_after is None:
            return None
        seconds = parse_retry_after(retry_after, self._clock.now())
        if seconds is None or seconds <= 0:
            return None  # "at once" would undo our backoff
        return min(seconds, self._options.retry_after_cap_seconds)


def payload(message: Message) -> bytes:
    """The body that is signed and posted: the same bytes at every attempt, and without the recipient."""
    created_at = message.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    content = {
        "id": message.id,
        "type": message.notification_type,
        "subject": message.subject,
        "body": message.body,
        "metadata": message.metadata,
        "createdAt": created_at,
    }
    try:
        return encode(content)
    except (TypeError, ValueError):
        raise Permanent(
            "The webhook can't be written: its text or metadata has values that JSON can't carry."
        ) from None


def parse_retry_after(text: str, now: int) -> float | None:
    """Seconds from now, out of a number or an HTTP date; None when it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        instant: datetime = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (to_millis(instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - now) / 1000


async def _drain(response: aiohttp.ClientResponse, limit_bytes: int) -> None:
    left = limit_bytes
    async with asyncio.timeout(_DRAIN_SECONDS):
        while left > 0 and (chunk := await response.content.read(left)):
            left -= len(chunk)
    if left <= 0:
        response.close()


def _broken(error: Exception, url: URL) -> Failure:
    place = f"{url.scheme}://{url.host}"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, Blocked):
        return Permanent(
            f"{place} is not on the public internet, so it is not called. "
            "If you trust it, add its network to channels.webhook.allow (ULAK_CHANNELS__WEBHOOK__ALLOW)."
        )
    if isinstance(error, aiohttp.InvalidURL):
        return Permanent(
            "The webhook recipient is not a URL that can be called; write it like https://example.org/hook."
        )
    if isinstance(
        error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError | aiohttp.ConnectionTimeoutError
    ):
        return Transient(f"{place} can't be reached ({type(error).__name__}); it is tried again.")
    # From here on a connection stood, so the request may have been read and acted upon.
    return Uncertain(
        f"{place} took the connection but gave no answer ({type(error).__name__}); it may have the message."
    )


def from_settings(settings: Any) -> WebhookChannel:
    section = settings.channels.webhook
    return WebhookChannel(
        WebhookOptions(
            allow=tuple(section.allow),
            timeout_seconds=section.timeout_seconds,
            retry_after_cap_seconds=section.retry_after_cap_seconds,
        )
    )
