"""Real `ulak` processes on one store under a killer: a server, and a worker beside it where the store is shared."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from tests.crash_http.nursery import Nursery, kill

# A machine with ten times as much to do as cores needs half a minute for a start. These only end a run that hangs.
PATIENCE_SECONDS = 600.0
START_SECONDS = 180.0
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


class Fleet:
    def __init__(self, store: str, folder: Path, seed: int, settings: Mapping[str, str] | None = None) -> None:
        self._chance = random.Random(seed)
        self._log = folder / "ulak.log"
        self._nursery = Nursery(self._log)
        self._port = _free_port()
        self._words = [f"--set={name}={value}" for name, value in {**SETTINGS, **(settings or {})}.items()]
        self._words += [f"--set=store={store}", f"--set=http.port={self._port}"]
        # On one file there is one process; a shared store has a worker beside the server, and either may die.
        self._roles = ["serve", "worker"] if store.startswith("postgresql") else ["serve"]
        self._alive: dict[str, int] = {}
        self.kills: Counter[str] = Counter()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        for role in self._roles:
            self._start(role)

    def close(self) -> None:
        for pid in self._alive.values():
            kill(pid)
        self._alive = {}
        self._nursery.close()

    def _start(self, role: str) -> None:
        self._alive[role] = self._nursery.start(role, *self._words)

    async def kill(self, kills: int, tell: Callable[[int], None]) -> None:
        for number in range(kills):
            await self.answering()
            await asyncio.sleep(self._chance.random() * 0.6)
            role = self._chance.choice(self._roles)
            kill(self._alive[role])
            self.kills[role] += 1
            self._start(role)
            tell(number + 1)
        await self.answering()

    async def answering(self) -> None:
        """Wait until the server takes work; a kill before that would only test the start."""
        with self.or_tell(START_SECONDS) as limit:
            async with limit:
                while not await self._is_ready():
                    await asyncio.sleep(0.02)

    async def _is_ready(self) -> bool:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            return (await self.get("/readyz"))[0] == 200
        return False

    @contextlib.contextmanager
    def or_tell(self, seconds: float) -> Iterator[asyncio.Timeout]:
        try:
            yield asyncio.timeout(seconds)
        except TimeoutError:
            told = self._log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"no progress within {seconds} s; the log ends with: {told}") from None

    async def get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.get(self.address + path) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())

    async def all_told(self) -> float:
        """Until no message waits any more, and the books say so themselves; returns by how much they differ."""
        with self.or_tell(PATIENCE_SECONDS) as limit:
            async with limit:
                while (parts := await self._books()).get('status="waiting"') != 0:
                    await asyncio.sleep(0.2)
        return parts["difference"]

    async def _books(self) -> dict[str, float]:
        _, text = await self.get("/metrics")
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
