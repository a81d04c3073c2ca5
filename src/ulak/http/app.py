"""Puts the door together: the front, the guard, and every room's routes, over one open Ulak."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog
from fastapi import Depends, FastAPI

from ulak.app import Ulak
from ulak.errors import Error
from ulak.http import breakers, database, dead, events, health, jobs, key_routes
from ulak.http.access import Access, keys_required
from ulak.http.compute import compute_routes
from ulak.http.front import Front
from ulak.http.gauges import Sampler
from ulak.http.guard import Guard
from ulak.http.hot import Receive, Routes, Scope, Send
from ulak.http.keys import Key, KeyRing
from ulak.http.meter import Meter
from ulak.http.notify import notify_routes
from ulak.http.page import add_page
from ulak.http.problems import answer_with_problems
from ulak.http.query import only_known_keys
from ulak.http.schema import describe

log = structlog.get_logger("ulak.http")

KEYS_PAUSE_SECONDS = 5.0

# A room's routes: one function per module. A new room is one more line here.
ROOMS: tuple[Callable[[Ulak], Routes], ...] = (
    jobs.routes,
    dead.routes,
    breakers.routes,
    events.routes,
    notify_routes,
    compute_routes,
)


class Door:
    """The ASGI application of one Ulak, and its switch for a graceful stop."""

    def __init__(self, ulak: Ulak, *, local: Key | None = None) -> None:
        self.ulak = ulak
        self.ring = KeyRing(local)
        settings = ulak.settings.http
        self.access = Access(self.ring, required=keys_required(settings))
        self.meter = Meter()
        self.guard = Guard(self.access, settings, ulak.clock)
        self.api = FastAPI(
            title="Ulak",
            docs_url=None,
            redoc_url=None,
            lifespan=lambda _: self.life(),
            dependencies=[Depends(only_known_keys)],
        )
        self._front = self._assemble()

    def _assemble(self) -> Front:
        sampler = Sampler(self.ulak)
        self.api.include_router(health.router(self.ulak, self.guard, self.meter, sampler))
        self.api.include_router(key_routes.router(self.ulak, self.ring))
        self.api.include_router(database.router(self.ulak, sampler))
        self._rooms = rooms = [room(self.ulak) for room in ROOMS]
        for room in rooms:
            for router in room.routers:
                self.api.include_router(router)
        hot = [route for room in rooms for route in room.hot]
        answer_with_problems(self.api)
        describe(self.api, hot)
        add_page(self.api)
        return Front(self.guard, rooms, self.api, self.meter, self.ulak.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._front(scope, receive, send)

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """From the first request to the last. A server that speaks the lifespan protocol enters it by itself."""
        await self.ring.load(self.ulak.store)
        self.access.check_start(self.ulak.settings.http.host)
        watches = [
            asyncio.create_task(self._watch_keys(), name="ulak-keys"),
            asyncio.create_task(self._front.handing_in.watch(), name="ulak-handing-in"),
        ]
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()
            for room in self._rooms:
                room.close()

    async def _watch_keys(self) -> None:
        """Another process may make or revoke keys in a shared store."""
        while True:
            await self.ulak.clock.wait(asyncio.Event(), KEYS_PAUSE_SECONDS)
            try:
                await self.ring.load(self.ulak.store)
            except Error as error:
                log.warning("keys_not_read", error=str(error))


def build_app(ulak: Ulak, *, local: Key | None = None) -> Door:
    """The ASGI application over an open Ulak. `local` is a key of this process, for the command line beside it."""
    return Door(ulak, local=local)
