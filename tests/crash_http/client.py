"""The client: posts over HTTP without a pause, keeps every 202 it has seen, and asks again where it has seen none."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import aiohttp

PAUSE_SECONDS = 0.02
TIMEOUT = aiohttp.ClientTimeout(total=10)


@dataclass
class Client:
    """Half of the messages carry an Idempotency-Key and are repeated until they are answered; half are posted once."""

    address: str
    hook: str
    posts: int = 0
    unanswered: int = 0
    refused: int = 0
    accepted: set[str] = field(default_factory=set)
    by_key: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    stopping: bool = False

    async def run(self, posters: int) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session:
            await asyncio.gather(*(self._post_on(session, number) for number in range(posters)))

    async def _post_on(self, session: aiohttp.ClientSession, poster: int) -> None:
        number = 0
        while not self.stopping:
            number += 1
            key = f"{poster}-{number}" if number % 2 else None
            while await self._post(session, key) is None and key is not None and not self.stopping:
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _post(self, session: aiohttp.ClientSession, key: str | None) -> str | None:
        self.posts += 1
        headers = {} if key is None else {"Idempotency-Key": key}
        request = {"notificationType": "WEBHOOK", "recipient": self.hook, "body": f"message {key}"}
        try:
            async with session.post(f"{self.address}/api/notifications", json=request, headers=headers) as answer:
                document = await answer.json()
                if answer.status != 202:
                    self.refused += 1
                    return None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            self.unanswered += 1
            return None
        identifier: str = document["id"]
        self.accepted.add(identifier)
        if key is not None:
            self.by_key[key].add(identifier)
        return identifier
