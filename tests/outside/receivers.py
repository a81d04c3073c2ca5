"""Receivers of webhooks outside of the server under test: nobody at all, slow ones, and ones that fail at first."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    """An address that is taken, and where nobody listens."""
    with contextlib.closing(socket.socket()) as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}/hook"


class Receiver:
    """Answers after `seconds`. Of the first attempts, every `failing`-th is answered with 503."""

    def __init__(self, *, failing: int = 0, seconds: float = 0.0) -> None:
        self._failing = failing
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self.attempts: Counter[str] = Counter()
        self.delivered: set[str] = set()
        self.first_at: dict[str, float] = {}
        self.url = ""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Receiver]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=500)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())  # it may be cancelled before it has begun

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                identifier = json.loads(await reader.readexactly(length))["id"]
                await asyncio.sleep(self._seconds)
                writer.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % self._answer(identifier))
                await writer.drain()

    def _answer(self, identifier: str) -> bytes:
        self.attempts[identifier] += 1
        self.first_at.setdefault(identifier, time.monotonic())
        if self._failing and self.attempts[identifier] == 1 and len(self.attempts) % self._failing == 0:
            return b"503 Service Unavailable"
        self.delivered.add(identifier)
        return b"200 OK"

    async def until(self, number: int, seconds: float = 120.0) -> float:
        """Wait until so many have had their first attempt; answers when that was."""
        async with asyncio.timeout(seconds):
            while len(self.first_at) < number:
                await asyncio.sleep(0.01)
        return max(self.first_at.values())

    async def until_delivered(self, number: int, seconds: float = 120.0) -> None:
        async with asyncio.timeout(seconds):
            while len(self.delivered) < number:
                await asyncio.sleep(0.01)
