"""A provider on loopback: keeps what it was asked, and answers as scripted before it answers as documented."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answered = web.StreamResponse


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ProviderServer:
    """`script` is worked off first: a response, or an event that the request waits for. Then `usual` answers."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    script: list[web.Response | asyncio.Event] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> Answered:
        self.asked.append(Asked(request.path, dict(request.headers), await request.read()))
        if self.script:
            step = self.script.pop(0)
            if isinstance(step, web.Response):
                return step
            await step.wait()
        return await self.usual(request, self.asked[-1])

    async def usual(self, request: web.Request, asked: Asked) -> Answered:
        raise NotImplementedError


def told(status: int, document: Any, **headers: str) -> web.Response:
    return web.json_response(document, status=status, headers={key.replace("_", "-"): v for key, v in headers.items()})


@asynccontextmanager
async def serving(server: ProviderServer) -> AsyncIterator[ProviderServer]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


Answers = Callable[[web.Request], Awaitable[Answered]]
