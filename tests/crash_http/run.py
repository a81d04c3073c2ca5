"""One run: a server (and a worker, where the store is shared) under a killer, a client and a sink; then the count."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.crash_http.client import Client
from tests.crash_http.nursery import Nursery, kill
from tests.crash_http.sink import Sink

POSTERS = 8
PATIENCE_SECONDS = 120.0
START_SECONDS = 25.0
SETTINGS = {
    "channels.webhook.allow": "127.0.0.0/8",
    "channels.webhook.retry_first_seconds": "0.1",
    "channels.webhook.retry_cap_seconds": "1",
    "channels.webhook.slots_per_destination": "32",
    "channels.webhook.max_attempts": "1000",
    "notify.capacity": "100000",
    "spine.lease_seconds": "1",
    "spine.poison_deaths": "100",  # here the killer is to blame, never the job
    "log.level": "warning",
}


@dataclass
class Report:
    """What a run cost. `lost` and `unexplained` must be empty, and the books must balance."""

    kills: dict[str, int] = field(default_factory=dict)
    posts: int = 0
    unanswered: int = 0
    refused: int = 0
    accepted: int = 0
    delivered: int = 0
    duplicates: int = 0
    uncertain_attempts: int = 0
    lost: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    keys_with_two: list[str] = field(default_factory=list)
    difference: float | None = None
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.unexplained or self.keys_with_two or self.difference)


class Run:
    def __init__(self, store: str, folder: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._log = folder / "ulak.log"
        self._nursery = Nursery(self._log)
        self._port = _free_port()
        self._words = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        self._words += [f"--set=store={store}", f"--set=http.port={self._port}"]
        # On one file there is one process; a shared store has a worker beside the server, and either may die.
        self._roles = ["serve", "worker"] if store.startswith("postgresql") else ["serve"]
        self._alive: dict[str, int] = {}
        self._sink = Sink(seed)
        self.report = Report()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def go(self, kills: int, tell: Callable[[int], None] = lambda _: None) -> Report:
        began = time.perf_counter()
        await self._sink.open()
        try:
            for role in self._roles:
                self._start(role)
            client = Client(self.address, f"http://127.0.0.1:{self._sink.port}/hook")
            posting = asyncio.create_task(client.run(POSTERS))
            await self._kill(kills, tell)
            client.stopping = True
            await posting
            await self._count(client)
        finally:
            for pid in self._alive.values():
                kill(pid)
            self._nursery.close()
            await self._sink.close()
        self.report.seconds = round(time.perf_counter() - began, 1)
        return self.report

    def _start(self, role: str) -> None:
        self._alive[role] = self._nursery.start(role, *self._words)

    async def _kill(self, kills: int, tell: Callable[[int], None]) -> None:
        for number in range(kills):
            await self._answering()
            await asyncio.sleep(self._chance.random() * 0.6)
            role = self._chance.choice(self._roles)
            kill(self._alive[role])
            self.report.kills[role] = self.report.kills.get(role, 0) + 1
            self._start(role)
            tell(number + 1)
        await self._answering()

    async def _answering(self) -> None:
        """Wait until the server takes work; a kill before that would only test the start."""
        with self._or_tell(START_SECONDS) as limit:
            async with limit:
                while not await self._is_ready():
                    await asyncio.sleep(0.02)

    async def _is_ready(self) -> bool:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            return (await self._get("/readyz"))[0] == 200
        return False

    @contextlib.contextmanager
    def _or_tell(self, seconds: float) -> Iterator[asyncio.Timeout]:
        try:
            yield asyncio.timeout(seconds)
        except TimeoutError:
            told = self._log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"no progress within {seconds} s; the log ends with: {told}") from None

    async def _get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.get(self.address + path) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())

    async def _count(self, client: Client) -> None:
        report, arrivals = self.report, self._sink.arrivals
        await self._all_settled()
        report.posts, report.unanswered, report.refused = client.posts, client.unanswered, client.refused
        report.accepted = len(client.accepted)
        report.delivered = len(arrivals)
        report.duplicates = sum(arrivals.values()) - len(arrivals)
        report.lost = sorted(client.accepted - arrivals.keys())
        report.keys_with_two = sorted(key for key, ids in client.by_key.items() if len(ids) > 1)
        for identifier in [one for one, number in arrivals.items() if number > 1]:
            await self._explain(identifier, arrivals[identifier] - 1)

    async def _explain(self, identifier: str, repeats: int) -> None:
        _, view = await self._get(f"/api/notifications/{identifier}")
        self.report.uncertain_attempts += view["uncertainAttempts"]
        if view["uncertainAttempts"] < repeats:
            self.report.unexplained.append(identifier)

    async def _all_settled(self) -> None:
        """Until nothing waits any more, and the books say so themselves."""
        with self._or_tell(PATIENCE_SECONDS) as limit:
            async with limit:
                while (parts := await self._books()).get('status="waiting"') != 0:
                    await asyncio.sleep(0.2)
        self.report.difference = parts["difference"]

    async def _books(self) -> dict[str, float]:
        _, text = await self._get("/metrics")
        parts = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("ulak_notify_notifications{"):
                parts[name.partition("{")[2].rstrip("}")] = float(value)
            elif name == "ulak_notify_conservation_difference":
                parts["difference"] = float(value)
        return parts


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
