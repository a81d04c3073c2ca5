"""Receivers of webhooks that are dead, slow, or fail at first; they remember when each body came first."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection

import uvloop

from bench.child import CONTEXT


class Receivers:
    """`failing` is the share of first attempts that is answered with 503; 1 is nobody there at all."""

    def __init__(self, number: int, failing: float = 0.0, seconds: float = 0.0) -> None:
        self._number = number
        self._failing = failing
        self._seconds = seconds
        self._attempts: Counter[str] = Counter()
        self.arrived: dict[str, float] = {}
        self.urls: list[str] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Receivers]:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(lambda: _Receiver(self), "127.0.0.1", 0, backlog=1000) for _ in range(self._number)
        ]
        self.urls = [f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}/hook" for one in servers]
        if self._failing >= 1:
            for one in servers:
                one.close()  # a port at which nobody listens
        try:
            yield self
        finally:
            for one in servers:
                one.close()

    async def answer(self, body: bytes) -> bytes:
        document = json.loads(body)
        await asyncio.sleep(self._seconds)
        self.arrived.setdefault(document["body"], time.perf_counter())
        self._attempts[document["id"]] += 1
        first = self._attempts[document["id"]] == 1
        fails = first and self._failing and len(self._attempts) % round(1 / self._failing) == 0
        return b"503 Service Unavailable" if fails else b"200 OK"


@contextmanager
def elsewhere(number: int, failing: float, seconds: float) -> Iterator[list[str]]:
    """The URLs of receivers in a process of their own: the work of a neighbour's server is not ours."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_listen, args=(theirs, number, failing, seconds))
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def _listen(pipe: Connection, number: int, failing: float, seconds: float) -> None:
    async def listen() -> None:
        async with Receivers(number, failing, seconds).listening() as receivers:
            pipe.send(receivers.urls)
            await asyncio.Event().wait()

    uvloop.run(listen())


class _Receiver(asyncio.Protocol):
    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if found and len(body) >= length:
            self._buffer = body[length:]
            self._task = asyncio.create_task(self._reply(body[:length]))

    async def _reply(self, body: bytes) -> None:
        status = await self._receivers.answer(body)
        if not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % status)  # type: ignore[attr-defined]
