"""Posts to addresses that people gave: guarded against private networks, signed where there is a secret."""

from __future__ import annotations

from ulak.channels.client import GuardedClient, refused
from ulak.channels.signature import Secret, sign
from ulak.channels.ssrf import AddressGuard, check_url
from ulak.clock import Clock, to_datetime
from ulak.spine.trace import headers_of

TIMEOUT_SECONDS = 15.0
PROVIDER = "WEBHOOK"


class Poster:
    def __init__(self, allow: tuple[str, ...], clock: Clock) -> None:
        self._client = GuardedClient(AddressGuard(allow))
        self._clock = clock
        self.close = self._client.close

    async def post(
        self, url: str, body: bytes, identifier: str, secret: str | None = None, trace: str | None = None
    ) -> int:
        """Return the status of the answer; a refusal raises the error that the job ends or retries with."""
        target, now = check_url(url), self._clock.now()
        headers = {"Content-Type": "application/json", **headers_of(trace)}
        if secret:
            headers |= sign([Secret(secret)], identifier, to_datetime(now), body)
        answer = await self._client.ask(target, body, headers, TIMEOUT_SECONDS, PROVIDER)
        if 200 <= answer.status < 300:
            return answer.status
        raise refused(answer, str(target.origin()), f"{PROVIDER}_HTTP_{answer.status}", now=now)
