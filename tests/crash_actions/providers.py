"""Providers outside of everything that is killed: they fail, hang, throttle and go dark, and count what they took."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from aiohttp import web

from tests.providers.google import FcmServer
from tests.providers.server import Asked, ProviderServer, serving, told
from tests.providers.twilio import ACCOUNT, TOKEN, TwilioServer

SLOWEST_ANSWER_SECONDS = 0.02


@dataclass(frozen=True)
class Faults:
    """Shares of all requests. Who hangs has taken the message; the sender can't know."""

    refused: float = 0.05
    hung: float = 0.02
    throttled: float = 0.01


NONE = Faults(0, 0, 0)


@dataclass
class Mood:
    """How all providers are today, and what they took: by provider and text."""

    faults: Faults
    chance: random.Random
    dark: str | None = None
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def meet(self, provider: str, request: web.Request, text: str) -> web.StreamResponse | None:
        """What goes wrong with this request; None when nothing does."""
        if self.dark == provider:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        luck = self.chance.random()
        if luck < self.faults.refused:
            return told(503, {})
        if luck < self.faults.refused + self.faults.throttled:
            return told(429, {}, Retry_After="1")
        self.taken[provider, text] += 1
        if luck < self.faults.refused + self.faults.throttled + self.faults.hung:
            await asyncio.sleep(3600)
        # It is taken; what may be killed now is the way from here to the commit.
        await asyncio.sleep(self.chance.random() * SLOWEST_ANSWER_SECONDS)
        return None


@dataclass
class MoodyFcm(FcmServer):
    mood: Mood = field(kw_only=True)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        text = json.loads(asked.body)["message"]["notification"]["body"]
        return await self.mood.meet("push", request, text) or await super().usual(request, asked)


@dataclass
class MoodyTwilio(TwilioServer):
    mood: Mood = field(kw_only=True)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        text = parse_qs(asked.body.decode())["Body"][0]
        return await self.mood.meet("sms", request, text) or await super().usual(request, asked)


@dataclass
class MoodyReceiver(ProviderServer):
    """Of webhooks."""

    mood: Mood = field(kw_only=True)

    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        text = json.loads(asked.body)["body"]
        return await self.mood.meet("webhook", request, text) or web.Response()


@dataclass
class Providers:
    mood: Mood
    fcm: MoodyFcm
    twilio: MoodyTwilio
    receiver: MoodyReceiver

    @property
    def settings(self) -> dict[str, str]:
        return {
            "channels.webhook.allow": "127.0.0.0/8",
            "channels.push.url": self.fcm.url,
            "channels.push.service_account": self.fcm.account(),
            "channels.sms.url": self.twilio.url,
            "channels.sms.account_sid": ACCOUNT,
            "channels.sms.auth_token": TOKEN,
            "channels.sms.sender": "+15550001111",
        }


@asynccontextmanager
async def providers(faults: Faults, seed: int) -> AsyncIterator[Providers]:
    mood = Mood(faults, random.Random(seed))
    made = Providers(mood, MoodyFcm(mood=mood), MoodyTwilio(mood=mood), MoodyReceiver(mood=mood))
    async with AsyncExitStack() as stack:
        for server in (made.fcm, made.twilio, made.receiver):
            await stack.enter_async_context(serving(server))
        yield made
