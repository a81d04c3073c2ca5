"""Puts the door together: the front, the guard, and every room's routes, over one open Ulak."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib import import_module

from fastapi import Depends, FastAPI

from ulak.access.keys import Key, KeyRing
from ulak.access.session import Sessions
from ulak.app import Ulak
from ulak.console.console import add_console
from ulak.errors import Error
from ulak.http.access import Access, keys_required
from ulak.http.api_page.page import add_page
from ulak.http.api_page.schema import describe
from ulak.http.caller import loopback, scopes_with
from ulak.http.front import Front
from ulak.http.gauges import StoreGauges
from ulak.http.guard import RequestGuard
from ulak.http.hot_routes import App, Receive, Routes, Scope, Send
from ulak.http.meter import Meter
from ulak.http.problems import answer_with_problems
from ulak.http.query import only_known_keys
from ulak.http.routes import audit, breakers, database, dead, engine, events, health, jobs, kinds
from ulak.http.routes import keys as key_routes
from ulak.http.trace_door import TraceDoor
from ulak.log import get_logger

log = get_logger("ulak.http")

KEYS_PAUSE_SECONDS = 4.0  # and a second to read them: a revoked key ends within five

# What every Ulak has; a room's routes are found by its name.
OWN: tuple[Callable[[Ulak], Routes], ...] = (
    jobs.routes,
    dead.routes,
    kinds.routes,
    breakers.routes,
    events.routes,
    audit.routes,
    engine.routes,
)


def routes_of(ulak: Ulak, name: str) -> Routes:
    """A room's routes: those of `ulak.http.routes.<its name>`."""
    made = import_module(f"ulak.http.routes.{name}").routes(ulak)
    assert isinstance(made, Routes)
    return made


class Door:
    """The ASGI application of one Ulak, and its switch for a graceful stop."""

    def __init__(self, ulak: Ulak, *, local: Key | None = None) -> None:
        self.ulak = ulak
        rooms = {room.name: routes_of(ulak, room.name) for room in ulak.rooms}
        self.parts = [*(own(ulak) for own in OWN), *rooms.values()]
        by_name = frozenset(name for name, routes in rooms.items() if routes.by_name)
        self.scopes = scopes_with({name: routes.scope for name, routes in rooms.items()}, by_name)
        self.ring = KeyRing(self.scopes, local)
        settings = ulak.settings.http
        self.sessions = Sessions(self.ring, ulak.clock)
        self.access = Access(self.ring, self.sessions, loopback(self.scopes), required=keys_required(settings))
        self.meter = Meter()
        self.guard = RequestGuard(self.access, settings, ulak.clock)
        self.api = FastAPI(
            title="Ulak",
            docs_url=None,
            redoc_url=None,
            lifespan=lambda _: self.life(),
            dependencies=[Depends(only_known_keys)],
        )
        self._front = self._assemble()
        tracer = ulak.telemetry.tracer
        self.app: App = TraceDoor(self._front, tracer) if tracer.enabled else self._front

    def _assemble(self) -> Front:
        self.api.include_router(health.router(self.ulak, self.guard, self.meter, StoreGauges(self.ulak)))
        self.api.include_router(key_routes.router(self.ulak, self.ring, self.scopes))
        self.api.include_router(database.router(self.ulak))
        for part in self.parts:
            for router in part.routers:
                self.api.include_router(router)
        hot = [route for part in self.parts for route in part.hot]
        answer_with_problems(self.api, hot)
        describe(self.api, hot, self.scopes)
        has_console = self.ulak.settings.console.enabled
        add_page(self.api, has_sign_in=has_console)
        if has_console:
            add_console(self.api, self.ulak, self.sessions, self.ring)
        return Front(self.guard, self.parts, self.api, self.meter, self.ulak.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def leave(self) -> None:
        for part in self.parts:
            part.leave()

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """From the first request to the last. A server that speaks the lifespan protocol enters it by itself."""
        await self.ring.load(self.ulak.store)
        await self.sessions.load(self.ulak.store)
        self.access.check_start(self.ulak.settings.http.host)
        watches = [
            asyncio.create_task(self._watch_keys(), name="ulak-keys"),
            asyncio.create_task(self._front.submissions.watch(), name="ulak-submissions"),
        ]
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()
            for part in self.parts:
                part.close()

    async def _watch_keys(self) -> None:
        """Another process may make or revoke keys in a shared store."""
        while True:
            await self.ulak.clock.wait(asyncio.Event(), KEYS_PAUSE_SECONDS)
            try:
                await self.ring.load(self.ulak.store)
            except Error as error:
                if self.guard.stopping:  # the store closes before the door does
                    return
                log.warning("keys_not_read", error=str(error))
            except Exception:  # a watch that ended would let a revoked key in for good
                log.exception("keys_not_read")


def build_app(ulak: Ulak, *, local: Key | None = None) -> Door:
    """The ASGI application over an open Ulak. `local` is a key of this process, for the command line beside it."""
    return Door(ulak, local=local)
