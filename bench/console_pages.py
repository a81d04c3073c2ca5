"""Durable accepts over HTTP while pages of the console look on, beside the same without a page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial

import uvloop

from bench import report
from bench.figure import Bench, Row, alternate, compared
from bench.http_load import CONNECTIONS, NOTIFICATION, flood, post
from bench.notify_accept import ACCEPT
from bench.notify_server import serving, ulak_server
from bench.place import in_file

PAGES = 50
PROMISED = 0.9


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.scaled(3.0, 1.0)
    sides = {
        "Ulak": partial(in_file, accepts, PAGES, seconds),
        "no page": partial(in_file, accepts, 0, seconds),
    }
    figure = f"SQLite: durable accepts over HTTP beside {PAGES} live pages, {CONNECTIONS} connections"
    yield from compared(figure, "/s", alternate(bench.rounds, sides), {"no page": PROMISED})


def accepts(place: str, pages: int, seconds: float) -> float:
    with serving(ulak_server, f"sqlite:///{place}", False, {}) as (port, token):
        return uvloop.run(_beside(port, token, pages, seconds))


async def _beside(port: int, token: str, pages: int, seconds: float) -> float:
    async with AsyncExitStack() as stack:
        for _ in range(pages):
            _look(stack, await _opened(port, token))
        return await flood(port, post(ACCEPT, NOTIFICATION, token), 202, seconds)


async def _opened(port: int, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = f"Authorization: Bearer {token}\r\n" if token else ""
    writer.write(f"GET /api/overview/stream HTTP/1.1\r\nHost: localhost\r\n{key}\r\n".encode())
    answer = await reader.readline()
    if b" 200 " not in answer:
        raise RuntimeError(f"the stream was refused: {answer!r}")
    return reader, writer


def _look(stack: AsyncExitStack, opened: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Read all that comes, as a page does, until the stack ends."""
    reader, writer = opened
    task = asyncio.get_running_loop().create_task(_read_all(reader))
    stack.callback(writer.close)
    stack.callback(task.cancel)


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


if __name__ == "__main__":
    report.alone("console_pages", rows)
