"""What the front costs and saves: a no-op route of the door against a bare FastAPI endpoint, and a durable accept.

    python -m bench.http_noop [--quick]

All sides decode the same body, run in the same server and get the same load: 64 connections, from another process. The
no-op of the door passes the key check, the limits and the metrics; the bare endpoint has none of these.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection

import msgspec
import uvloop
from fastapi import FastAPI

from bench import child
from bench.figure import Bench, Row, alternate, compared
from ulak import Ulak
from ulak.http import app as door_module
from ulak.http.app import Door, build_app
from ulak.http.caller import Caller
from ulak.http.hot import HotRoute, Receive, Routes, Scope, Send, decode, read_body, reply
from ulak.http.jobs import JobAccepted, JobRequest
from ulak.http.keys import keep_key, make_key
from ulak.http.server import address_of, listen, listening
from ulak.http.view import View
from ulak.settings import load

CONNECTIONS = 64
BODY = b'{"kind": "mail.send", "payload": {"to": "user@example.com", "subject": "Welcome"}, "priority": "HIGH"}'
SWITCH_SECONDS = 0.0005
_decoder = msgspec.json.Decoder(JobRequest)


class Job(View):
    kind: str
    payload: dict[str, str]
    priority: str = "NORMAL"


async def noop(_: Scope, receive: Receive, send: Send, __: Caller) -> int:
    asked: JobRequest = decode(_decoder, await read_body(receive))
    return await reply(send, 202, msgspec.json.encode(JobAccepted(asked.kind)))


def _routes(_: Ulak) -> Routes:
    return Routes(hot=(HotRoute("POST", "/noop", noop, "jobs", "Does nothing", JobRequest, JobAccepted),))


def bare() -> FastAPI:
    application = FastAPI()

    @application.post("/noop", status_code=202)
    async def answer(job: Job) -> dict[str, str]:
        return {"id": job.kind, "status": "ACCEPTED"}

    return application


def serve(side: str, store: str, pipe: Connection) -> None:
    """A server process: tells (port, token), ends when told to."""
    sys.setswitchinterval(SWITCH_SECONDS)
    door_module.ROOMS = (*door_module.ROOMS, _routes)
    uvloop.run(_serve(side, store, pipe))


async def _serve(side: str, store: str, pipe: Connection) -> None:
    overrides = {"store": store, "http.port": 0, "http.require_keys": True, "spine.ballast_mb": 0}
    async with Ulak(settings=load(overrides=overrides).settings, work=False) as ulak:
        made = make_key("bench", ["jobs"], ulak.clock.now())
        await ulak.store.write(keep_key, made.key)
        door: Door = build_app(ulak)
        listener = listen(ulak.settings.http)
        application = bare() if side == "bare" else door
        async with door.life(), listening(application, listener):  # type: ignore[arg-type]
            pipe.send((int(address_of(listener).rpartition(":")[2]), made.token))
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        listener.close()


class Client(asyncio.Protocol):
    """Sends the same request again as soon as its answer is there."""

    done = 0
    wrong = 0

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if found and len(rest) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            Client.done += 1
            Client.wrong += not head.startswith(b"HTTP/1.1 202")
            self._buffer = b""
            self._transport.write(self._request)


async def _load(port: int, path: str, token: str, seconds: float) -> float:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
    request = f"{head}content-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
    loop = asyncio.get_running_loop()
    clients = [await loop.create_connection(lambda: Client(request), "127.0.0.1", port) for _ in range(CONNECTIONS)]
    await asyncio.sleep(seconds / 3)  # warm
    before, began = Client.done, time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (Client.done - before) / (time.perf_counter() - began)
    for transport, _ in clients:
        transport.abort()
    if Client.wrong:
        raise RuntimeError(f"{Client.wrong} answers were no 202")
    return rate


def measured(side: str, path: str, durable: bool, seconds: float) -> float:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="bench-http-") as folder:
        store = f"sqlite:///{folder}/ulak.db" if durable else "memory:"
        ours, theirs = context.Pipe()
        server = context.Process(target=serve, args=(side, store, theirs), daemon=True)
        server.start()
        port, token = ours.recv()
        try:
            return uvloop.run(_load(port, path, token, seconds))
        finally:
            ours.send(None)
            server.join(10)


def rows(bench: Bench) -> Iterator[Row]:
    seconds = bench.seconds * 3
    sides = {
        "Ulak": ("door", "/noop", False),
        "bare FastAPI endpoint": ("bare", "/noop", False),
        "durable accept, SQLite": ("door", "/api/jobs", True),
    }
    samples = alternate(
        bench.rounds, {name: lambda side=side: child.measure(measured, *side, seconds) for name, side in sides.items()}
    )
    durable = samples.pop("durable accept, SQLite")
    yield from compared("HTTP no-op in front, 64 connections", "requests/s", samples, {"bare FastAPI endpoint": 2})
    yield from compared(
        "HTTP durable accept, SQLite",
        "requests/s",
        {"Ulak": durable, "no-op in front": samples["Ulak"], "bare FastAPI endpoint": samples["bare FastAPI endpoint"]},
        {"no-op in front": 0.5, "bare FastAPI endpoint": 1.5},
    )


def main() -> None:
    with ExitStack() as stack:
        for row in rows(Bench("--quick" in sys.argv, stack)):
            print(f"{row.figure}: {row.ulak:,.0f} {row.unit}; {row.against}: {row.other:,.0f}; {row.ratio:.2f} ×")


if __name__ == "__main__":
    main()
