"""Runs the door: a socket of its own, uvicorn with bounded requests, and signals left to the caller."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn

from ulak.errors import Conflict, Misconfigured
from ulak.http.app import Door
from ulak.http.protocol import BoundedProtocol
from ulak.settings import Http

KEEP_ALIVE_SECONDS = 15
LAST_ANSWERS_SECONDS = 3


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: a stop begins with Ulak, not with the sockets."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._leaving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Its tick sets the Date header; waiting for an event instead of polling makes a stop quick."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), 1)

    def leave(self) -> None:
        self.should_exit = True
        self._leaving.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(settings: Http) -> socket.socket:
    """The listening socket, taken before anything else is started."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise _explained(error, settings) from None
    return listener


def _explained(error: OSError, settings: Http) -> Exception:
    place = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return Conflict(f"{place} is taken by another process; stop it, or choose another port: --set http.port=PORT")
    return Misconfigured(f"can't listen on {place}: {error.strerror or error}; check http.host and http.port")


def address_of(listener: socket.socket) -> str:
    """Where this machine reaches the door: one that listens everywhere is reached on loopback."""
    host, port = listener.getsockname()[:2]
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


@contextlib.asynccontextmanager
async def listening(door: Door, listener: socket.socket) -> AsyncIterator[None]:
    """Requests are answered from the first moment of it to the last."""
    server = _make_server(door)
    running = asyncio.create_task(server.serve(sockets=[listener]), name="ulak-http")
    try:
        await server.ready.wait()
        yield
    finally:
        door.leave()
        server.leave()
        await running


def _make_server(door: Door) -> HttpServer:
    config = uvicorn.Config(
        door.app,
        http=BoundedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=LAST_ANSWERS_SECONDS,
    )
    return HttpServer(config)
