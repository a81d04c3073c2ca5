"""Clients that ask over HTTP as fast as they get answers, and a sink that says yes: plain protocols, so that the
measuring side costs as little as it can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.load import WARMUP_SECONDS

CONNECTIONS = 64
NOTIFICATION = {
    "notificationType": "EMAIL",
    "recipient": "user@example.com",
    "subject": "Welcome",
    "body": "Welcome to our service! " * 6,
    "priority": "NORMAL",
    "metadata": {"campaignId": "123"},
}


def post(path: str, document: Any, token: str = "") -> bytes:
    """A whole POST request, as it goes over the line."""
    body = msgspec.json.encode(document)
    key = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{key}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Asking(asyncio.Protocol):
    """One connection: asks, waits for the whole answer, tells its status, asks again if there is something to ask."""

    def __init__(self, following: Callable[[], bytes | None], answered: Callable[[bytes, float], None]) -> None:
        self._following = following
        self._answered = answered
        self._buffer = b""
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.ask()

    def ask(self) -> None:
        request = self._following()
        if request is None:
            if not self.ended.done():
                self.ended.set_result(None)
            return
        self._asked = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0):
            return
        self._buffer = b""
        self._answered(head[9:12], time.perf_counter() - self._asked)
        self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(ConnectionError(f"the server hung up: {error}"))


async def flood(port: int, request: bytes, expected: int, seconds: float, connections: int = CONNECTIONS) -> float:
    """Answers per second, from that many connections that never pause."""
    begins = time.perf_counter() + WARMUP_SECONDS
    ends = begins + seconds
    finished, wrong = 0, b""

    def answered(status: bytes, _: float) -> None:
        nonlocal finished, wrong
        finished += time.perf_counter() >= begins
        wrong = wrong if status == b"%d" % expected else status

    loop = asyncio.get_running_loop()
    asking = [
        (
            await loop.create_connection(
                lambda: Asking(lambda: request if time.perf_counter() < ends else None, answered), "127.0.0.1", port
            )
        )[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(one.ended for one in asking))
    if wrong:
        raise RuntimeError(f"the server answered {wrong.decode()}, not {expected}")
    return finished / (time.perf_counter() - begins)


class Sink(asyncio.Protocol):
    """Answers 204 to every POST and tells when it came; `dead` takes requests and never answers."""

    arrived: Callable[[bytes], None] = staticmethod(lambda _: None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._buffer = b""
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            type(self).arrived(body)
