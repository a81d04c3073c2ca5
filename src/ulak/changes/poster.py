"""Posts to addresses that people gave: guarded against private networks, signed where there is a secret."""

from __future__ import annotations

import contextlib

import aiohttp

from ulak.channels.signature import Secret, sign
from ulak.channels.ssrf import AddressGuard, Blocked, GuardedResolver, check_url
from ulak.clock import Clock, to_datetime
from ulak.errors import Permanent, Throttled, Transient
from ulak.spine.trace import headers_of

TIMEOUT_SECONDS = 15.0
_LATER = frozenset({408, 425, 429})


class Poster:
    def __init__(self, allow: tuple[str, ...], clock: Clock) -> None:
        self._guard = AddressGuard(allow)
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, body: bytes, identifier: str, secret: str | None = None, trace: str | None = None
    ) -> int:
        """The status of the answer; raises what a job makes of a refusal."""
        target = check_url(url)
        headers = {"Content-Type": "application/json", "User-Agent": "Ulak", **headers_of(trace)}
        if secret:
            headers |= sign([Secret(secret)], identifier, to_datetime(self._clock.now()), body)
        place = f"{target.scheme}://{target.host}"
        try:
            async with self._open().post(target, data=body, headers=headers, allow_redirects=False) as answer:
                return _judged(place, answer.status)
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, Blocked):
                raise Permanent(
                    f"{place} is not on the public internet, so it is not called; "
                    "if you trust it, add its network to channels.webhook.allow"
                ) from None
            raise Transient(f"{place} can't be reached ({type(error).__name__})") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(f"{place} gave no answer ({type(error).__name__})") from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self._guard), socket_factory=self._guard.open_socket
            )
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await session.close()


def _judged(place: str, status: int) -> int:
    if 200 <= status < 300:
        return status
    if status == 429:
        raise Throttled(f"{place} answered {status}")
    if status in _LATER or status >= 500:
        raise Transient(f"{place} answered {status}")
    raise Permanent(f"{place} answered {status}")
