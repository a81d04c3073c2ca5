"""The story's provider: it takes webhooks on loopback, and goes dark for a while, again and again."""

from __future__ import annotations

import asyncio
import contextlib

DARK_SECONDS, LIT_SECONDS = 40.0, 50.0
_TAKEN = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
_DARK = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
READ_SECONDS = 10.0


class DarkProvider:
    """`is_dark` answers 503 to everybody; the story's breaker then closes it off."""

    def __init__(self) -> None:
        self.is_dark = False
        self.taken = 0
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.StreamWriter] = set()
        self.url = ""

    async def open(self, wanted: int) -> None:
        """On this port if it is free: what was sent there before a restart then arrives after it."""
        try:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", wanted)
        except OSError:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/turna-simulated"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for caller in self._callers:
            caller.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                async with asyncio.timeout(READ_SECONDS):
                    await self._take(reader, writer)
        finally:
            self._callers.discard(writer)
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        await reader.readexactly(length)
        self.taken += not self.is_dark
        writer.write(_DARK if self.is_dark else _TAKEN)
        await writer.drain()
