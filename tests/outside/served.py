"""A real `ulak serve` with its default settings, and a client that asks it over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[2]
TIMEOUT = aiohttp.ClientTimeout(total=60)
CLIENTS = 50
SERVES = re.compile(rb"Ulak serves (http://\S+)")


class Served:
    def __init__(self, address: str, session: aiohttp.ClientSession, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self.process = process
        self._session = session
        self._free = asyncio.Semaphore(CLIENTS)

    async def get(self, path: str) -> tuple[int, Any]:
        return await self.ask("GET", path)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.request(method, self.address + path, json=body) as answer:
            return answer.status, await answer.json()

    async def post(self, headers: dict[str, str] | None = None, **fields: Any) -> tuple[int, float, Any]:
        """The status, the seconds that it took, and the document."""
        request = {"body": "hello", **fields}
        async with self._free:
            began = time.monotonic()
            url = f"{self.address}/api/notifications"
            async with self._session.post(url, json=request, headers=headers or {}) as answer:
                return answer.status, time.monotonic() - began, await answer.json()

    async def post_many(self, number: int, **fields: Any) -> list[int]:
        answers = await asyncio.gather(*(self.post(**fields) for _ in range(number)))
        return [status for status, _, _ in answers]

    async def status_of(self, identifier: str, *wanted: str, seconds: float = 20.0) -> str:
        """Its status, once it is one of these."""
        async with asyncio.timeout(seconds):
            while True:
                _, found = await self.get(f"/api/notifications/{identifier}")
                if found["status"] in wanted:
                    return str(found["status"])
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def served(store: str, folder: Path, app: str | None = None, **settings: object) -> AsyncIterator[Served]:
    """`app` is a module in the folder, as `MODULE:NAME`, with handlers of its own."""
    given = {"store": store, "http.port": 0, "channels.webhook.allow": "127.0.0.0/8", **settings}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ULAK_")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    told = folder / "serve.log"
    began = told.stat().st_size if told.exists() else 0  # of a server that was started here before
    with told.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ulak", "serve", *([f"--app={app}"] if app else []),
             *(f"--set={name}={value}" for name, value in given.items())],
            env=environment, cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        address = await _address_of(process, told, began)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session:
            yield Served(address, session, process)
    finally:
        process.kill()
        process.wait()


async def _address_of(process: subprocess.Popen[bytes], told: Path, began: int) -> str:
    """Where it says that it serves; it says so when it is ready."""
    async with asyncio.timeout(60):
        while process.poll() is None:
            if found := SERVES.search(told.read_bytes(), began):
                return found[1].decode()
            await asyncio.sleep(0.05)
    raise AssertionError(f"the server has ended: {told.read_text()}")
