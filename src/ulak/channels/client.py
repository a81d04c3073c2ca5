"""The one way out over HTTP: a session behind the address guard, and an answer cut to a size. Knows no provider."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from ulak.channels.channel import Uncertain
from ulak.channels.ssrf import AddressGuard, Blocked, GuardedResolver
from ulak.clock import to_millis
from ulak.errors import Failure, Permanent, Throttled, Transient

_DRAIN_SECONDS = 1.0
_LATER = frozenset({408, 425, 429})
HEADERS = {"User-Agent": "Ulak", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer over HTTP. The body is cut at the client's limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is anything else."""
        try:
            found = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class GuardedClient:
    """Sends requests to public addresses and to those that `guard` allows. Redirects are not followed."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        connections: int = 100,
        connect_seconds: float = 5.0,
        body_limit_bytes: int = 65_536,
        ca_file: str | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._guard = guard
        self._connections = connections
        self._connect_seconds = connect_seconds
        self._limit_bytes = body_limit_bytes
        self._ca_file = ca_file
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: URL, body: bytes, headers: Mapping[str, str], seconds: float, *, read: bool = True
    ) -> HttpAnswer:
        """Post and wait for the answer. With `read` off, the body is drained for the connection's sake alone."""
        limit = aiohttp.ClientTimeout(total=seconds, connect=min(self._connect_seconds, seconds))
        async with self._open().post(url, data=body, headers=headers, allow_redirects=False, timeout=limit) as response:
            if read:
                return HttpAnswer(response.status, response.headers, await self._read(response))
            # The answer is in. What follows is only courtesy: a body read to its end lets the connection be used again.
            if not response.content.is_eof():
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                    async with asyncio.timeout(_DRAIN_SECONDS):
                        await self._read(response)
            return HttpAnswer(response.status, response.headers, b"")

    async def ask(self, url: URL, body: bytes, headers: Mapping[str, str], seconds: float, provider: str) -> HttpAnswer:
        """Post to a provider's API; a request without an answer is a failure with a code of that provider."""
        try:
            return await self.post(url, body, headers, seconds)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The original names the whole URL, which may hold a token.
            raise broken(error, str(url.origin()), provider) from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        found = bytearray()
        while len(found) < self._limit_bytes:
            chunk = await response.content.read(self._limit_bytes - len(found))
            if not chunk:
                return bytes(found)
            found += chunk
        response.close()
        return bytes(found)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._connections,
            resolver=GuardedResolver(self._guard, self._resolver),
            socket_factory=self._guard.open_socket,
            ssl=ssl.create_default_context(cafile=self._ca_file) if self._ca_file else True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # a packed bomb stays packed
            trust_env=False,  # a proxy would dial for us, past the guard
        )


def broken(error: Exception, place: str, provider: str, allow_setting: str = "channels.webhook.allow") -> Failure:
    """A request that got no answer, as a failure: it says whether the other side may have acted on it."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, Blocked):
        variable = f"ULAK_{allow_setting.replace('.', '__').upper()}"
        return Permanent(
            f"{place} is not on the public internet, so it is not called. "
            f"If you trust it, add its network to {allow_setting} ({variable}).",
            code=f"{provider}_BLOCKED",
            unsent=True,
        )
    if isinstance(error, aiohttp.InvalidURL):
        return Permanent(
            "The recipient is not a URL that can be called; write it like https://example.org/hook.",
            code=f"{provider}_INVALID_URL",
            unsent=True,
        )
    late = isinstance(error, TimeoutError)
    why = f"({type(error).__name__})"
    if isinstance(
        error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError | aiohttp.ConnectionTimeoutError
    ):
        code = f"{provider}_TIMEOUT" if late else f"{provider}_UNREACHABLE"
        return Transient(f"{place} can't be reached {why}.", code=code)
    # From here on a connection stood, so the request may have been read and acted upon.
    code = f"{provider}_TIMEOUT" if late else f"{provider}_NO_ANSWER"
    return Uncertain(f"{place} took the connection but gave no answer {why}; it may have the message.", code=code)


def refused(answer: HttpAnswer, place: str, code: str, *, now: int, cap_seconds: float = 3600.0) -> Failure:
    """A refusal that says nothing but its status, as a failure."""
    status = answer.status
    if 300 <= status < 400:
        return Permanent(f"{place} answered {status}: redirects are not followed; use the final URL.", code=code)
    if status not in _LATER and status < 500:
        return Permanent(f"{place} answered {status}: it does not take this message; ask its owner why.", code=code)
    seconds = wait_seconds(answer.headers.get("Retry-After"), now, cap_seconds)
    if seconds is not None or status == 429:
        return Throttled(f"{place} answered {status} and asks us to wait.", retry_after_seconds=seconds, code=code)
    return Transient(f"{place} answered {status}.", code=code)


def wait_seconds(retry_after: str | None, now: int, cap_seconds: float = 3600.0) -> float | None:
    """Retry-After as seconds, never more than the cap: a receiver can't park its messages with us for ever."""
    seconds = None if retry_after is None else parse_retry_after(retry_after, now)
    if seconds is None or seconds <= 0:
        return None  # "at once" would undo our backoff
    return min(seconds, cap_seconds)


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
