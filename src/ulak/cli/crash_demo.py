"""The proof to touch: a serving process is killed again and again while a client posts, and the ledger is counted.

Server, client and receiver are apart: only what was answered with 202 counts as accepted, only what reached the
receiver as arrived. Nothing of it touches a store of the user's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from ulak.clock import SystemClock
from ulak.errors import Unavailable

POSTERS = 4
PAUSE_SECONDS = 0.02
RETRY_SECONDS = 0.1
START_SECONDS = 60.0
SETTLE_SECONDS = 120.0
REQUEST = aiohttp.ClientTimeout(total=10)
MAX_LIFE_SECONDS = 0.8  # from the moment it answers to the kill
SETTINGS = {
    "store": "sqlite:///crash.db",
    "channels.webhook.allow": "127.0.0.0/8",
    "channels.webhook.retry_first_seconds": "0.2",
    "channels.webhook.retry_cap_seconds": "1",
    "channels.webhook.slots_per_destination": "32",
    "channels.webhook.max_attempts": "1000",
    "spine.poison_deaths": "100",  # here the killer is to blame, not the job
    "log.level": "warning",
}


@dataclass
class Ledger:
    """`unanswered`: the connection broke before an answer, and the client asked again with the same key."""

    killed: int = 0
    posts: int = 0
    unanswered: int = 0
    accepted: set[str] = field(default_factory=set)
    arrivals: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    uncertain: int = 0
    unexplained: set[str] = field(default_factory=set)
    accounted: bool | None = None

    @property
    def arrived(self) -> int:
        """Of the accepted; what arrives before its 202 does is counted when that has come."""
        return len(self.accepted & self.arrivals.keys())

    @property
    def on_the_way(self) -> set[str]:
        return self.accepted - self.arrivals.keys() - self.lost

    @property
    def twice(self) -> list[str]:
        return [one for one, number in self.arrivals.items() if number > 1]

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.unexplained and self.accounted is True


class CrashDemo:
    def __init__(self, folder: Path, seed: int, tell: Callable[[Ledger], None]) -> None:
        self.ledger = Ledger()
        self._folder = folder
        self._chance = random.Random(seed)
        self._tell = tell
        self._clock = SystemClock()
        self._port = _free_port()
        self._hook = ""
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._is_posting = True

    async def run(self, kills: int, seconds: float) -> Ledger:
        ends_at = self._clock.monotonic() + seconds
        runner = await self._receive()
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{self._port}", timeout=REQUEST) as session:
                await self._start(session)
                posters = [asyncio.create_task(self._post_on(session)) for _ in range(POSTERS)]
                try:
                    while self.ledger.killed < kills and self._clock.monotonic() < ends_at:
                        await self._kill_once(session)
                    self._is_posting = False
                    await asyncio.gather(*posters)
                finally:
                    for poster in posters:
                        poster.cancel()
                await self._settle(session)
                await self._count(session)
        finally:
            self._end()
            await runner.cleanup()
        return self.ledger

    # The receiver

    async def _receive(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/hook", self._arrived)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self._hook = f"http://{host}:{port}/hook"
        return runner

    async def _arrived(self, request: web.Request) -> web.Response:
        self.ledger.arrivals[(await request.json())["id"]] += 1
        await asyncio.sleep(
            self._chance.random() * PAUSE_SECONDS
        )  # a kill here cuts off an attempt that had its effect
        return web.Response(status=204)

    # The client

    async def _post_on(self, session: aiohttp.ClientSession) -> None:
        while self._is_posting:
            key = str(next(self._numbers))
            while not await self._post(session, key):  # noqa: ASYNC110 - nothing tells when a dead server is back
                await asyncio.sleep(RETRY_SECONDS)
            self._tell(self.ledger)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _post(self, session: aiohttp.ClientSession, key: str) -> bool:
        message = {"notificationType": "WEBHOOK", "recipient": self._hook, "body": f"message {key}"}
        self.ledger.posts += 1
        try:
            async with session.post("/api/notifications", json=message, headers={"Idempotency-Key": key}) as answer:
                document = await answer.json()
                if answer.status != 202:
                    return False
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            self.ledger.unanswered += 1
            return False
        self.ledger.accepted.add(document["id"])
        return True

    # The killer

    async def _kill_once(self, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(self._chance.random() * MAX_LIFE_SECONDS)
        self._kill()
        self.ledger.killed += 1
        self._tell(self.ledger)
        await self._start(session)
        await self._look_for_the_lost(session)
        self._tell(self.ledger)

    def _kill(self) -> None:
        if self._server is not None:
            self._server.kill()  # SIGKILL: no handler, no farewell
            self._server.wait()

    async def _start(self, session: aiohttp.ClientSession) -> None:
        self._server = self._spawn()
        await self._until(lambda: self._is_ready(session), START_SECONDS, "the server does not answer")

    def _spawn(self) -> subprocess.Popen[bytes]:
        assignments = SETTINGS | {"http.port": str(self._port)}
        words = [f"--set={name}={value}" for name, value in assignments.items()]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ULAK_")}
        with (self._folder / "server.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "ulak", "serve", *words],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        if self._server is not None and self._server.poll() is not None:
            raise Unavailable(f"the server ended by itself: {self._log_end()}")
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with session.get("/readyz") as answer:
                return answer.status == 200
        return False

    async def _until(self, is_so: Callable[[], Any], seconds: float, otherwise: str) -> None:
        give_up_at = self._clock.monotonic() + seconds
        while not await is_so():
            if self._clock.monotonic() > give_up_at:
                raise Unavailable(f"{otherwise} within {seconds:.0f} s: {self._log_end()}")
            await asyncio.sleep(PAUSE_SECONDS)

    def _log_end(self) -> str:
        lines = (self._folder / "server.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return " ".join(lines[-3:]) or "it said nothing"

    def _end(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self._kill()

    # The count

    async def _look_for_the_lost(self, session: aiohttp.ClientSession) -> None:
        """After a restart: does the store know every message that was accepted and has not arrived yet?"""
        for identifier in sorted(self.ledger.on_the_way):
            async with session.get(f"/api/notifications/{identifier}") as answer:
                if answer.status == 404 and identifier not in self.ledger.arrivals:
                    self.ledger.lost.add(identifier)
        self.ledger.uncertain = (await self._overview(session))["totals"]["uncertain"]

    async def _settle(self, session: aiohttp.ClientSession) -> None:
        async def is_quiet() -> bool:
            overview = await self._overview(session)
            self.ledger.uncertain = overview["totals"]["uncertain"]
            self._tell(self.ledger)
            return not any(overview["states"].values())

        await self._until(is_quiet, SETTLE_SECONDS, "work is left")

    async def _count(self, session: aiohttp.ClientSession) -> None:
        self.ledger.lost |= self.ledger.on_the_way
        self.ledger.accounted = (await self._overview(session))["accounted"]
        for identifier in self.ledger.twice:
            async with session.get(f"/api/notifications/{identifier}") as answer:
                view = await answer.json()
            if view.get("uncertainAttempts", 0) < self.ledger.arrivals[identifier] - 1:
                self.ledger.unexplained.add(identifier)

    async def _overview(self, session: aiohttp.ClientSession) -> Any:
        async with session.get("/api/overview") as answer:
            return await answer.json()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
