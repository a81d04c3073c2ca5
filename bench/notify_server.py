"""Servers for the notify figures, each in a process of its own: Ulak with a no-op route beside, and bare FastAPI."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import structlog
import uvicorn
import uvloop
from fastapi import FastAPI
from pydantic import BaseModel

from bench.child import CONTEXT
from ulak import Ulak
from ulak.access.keys import keep_key, make_key
from ulak.channels.channel import NotificationType
from ulak.cli.process import spare_the_collector
from ulak.http.app import Door, build_app
from ulak.http.hot_routes import HotRoute, Receive, Scope, Send, read_body, reply
from ulak.http.paths import KnownPath
from ulak.http.server import listen, listening
from ulak.notify.request import decode_request
from ulak.settings import Settings

CAPACITY = 10_000_000
NOOP = "/bench/noop"
_TYPES = frozenset(NotificationType)
_ANSWER = (
    b'{"id":"00000000-0000-8000-8000-000000000000","status":"ACCEPTED",'
    b'"message":"Notification submitted for processing","submittedAt":"2024-01-15T10:30:00Z"}'
)


@contextlib.contextmanager
def serving(run: Any, *arguments: Any) -> Iterator[tuple[int, str]]:
    """(port, token) of a server that `run(pipe, *arguments)` keeps up until the pipe says to stop."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=run, args=(theirs, *arguments))
    process.start()
    theirs.close()  # so that a server which dies is noticed
    try:
        yield ours.recv()
    finally:
        with contextlib.suppress(BrokenPipeError):
            ours.send(None)
        process.join(20)
        process.kill()


def prepare() -> None:
    """As quiet as the peers."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def ulak_server(pipe: Connection, store: str, work: bool, sections: dict[str, Any]) -> None:
    """What `ulak serve` runs, with keys asked for on loopback too, and a route that decodes and does nothing."""
    prepare()
    notify = {"capacity": CAPACITY, **sections.pop("notify", {})}
    settings = Settings(store=store, notify=notify, http={"port": 0, "require_keys": True}, **sections)
    uvloop.run(_serve(pipe, Ulak(settings=settings, work=work)))


async def _serve(pipe: Connection, ulak: Ulak) -> None:
    listener = listen(ulak.settings.http)
    async with ulak:
        key = make_key("bench", ["notify", "metrics", "look"], ulak.clock.now())
        await ulak.write(keep_key, key.key)
        door = build_app(ulak)
        _add_noop(door)
        async with door.life(), listening(door, listener):
            spare_the_collector()
            pipe.send((listener.getsockname()[1], key.token))
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
            door.guard.stopping = True
    listener.close()


def _add_noop(door: Door) -> None:
    async def noop(_: Scope, receive: Receive, send: Send, __: Any) -> int:
        decode_request(await read_body(receive), _TYPES)
        return await reply(send, 202, _ANSWER)

    route = HotRoute("POST", NOOP, noop, "notify", "", None, None)
    door._front._paths._exact[route.method, route.path] = KnownPath(route, takes_work=True)


class Body(BaseModel):
    notificationType: str  # noqa: N815 - the wire's names
    recipient: str
    body: str
    subject: str | None = None
    priority: str = "NORMAL"
    metadata: dict[str, Any] = {}


def fastapi_server(pipe: Connection) -> None:
    """An endpoint as the tutorial has it: a model in, a dictionary out, nothing done."""
    app = FastAPI()

    @app.post(NOOP, status_code=202)
    async def noop(body: Body) -> dict[str, str]:
        return {"id": "0", "status": "ACCEPTED", "message": body.priority, "submittedAt": "2024-01-15T10:30:00Z"}

    config = uvicorn.Config(app, port=0, log_level="error", access_log=False, loop="uvloop", http="httptools")
    uvloop.run(_serve_plain(pipe, uvicorn.Server(config)))


async def _serve_plain(pipe: Connection, server: uvicorn.Server) -> None:
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    pipe.send((server.servers[0].sockets[0].getsockname()[1], ""))
    await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
    server.should_exit = True
    await task
