"""Takes the pictures of the docs: `make shots` starts the demo and the tests' town, looks, and writes docs/images."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import aiohttp

from tests.browser.devtools import chromium
from tests.browser.town import town

IMAGES = Path(__file__).parents[2] / "docs/images"
WATCH_SECONDS = 75  # so that the overview's chart has something to show
DEMO = (
    ("console-overview", "", 1216, 720, "light", "en"),
    ("console-overview-dark", "", 1216, 600, "dark", "tr"),
    ("console-dispatch", "dispatch", 1216, 680, "light", "en"),
    ("console-telephone", "", 390, 760, "light", "en"),
)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.asynccontextmanager
async def demo(folder):
    port = free_port()
    environment = {**os.environ, "ULAK_HTTP__PORT": str(port), "ULAK_CONSOLE__TIME_ZONE": "Europe/Istanbul"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ulak", "serve", "--demo"),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await answering(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def answering(address):
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{address}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)


async def take(tab, address, name, path, width, height, scheme, language):
    await tab.look(width=width, scheme=scheme, height=height)
    await tab.show(f"{address}/console/{path}?lang={language}")
    await tab.until("performance.now() > 1500")  # a frame of figures has come
    file = IMAGES / f"{name}.png"
    file.write_bytes(await tab.picture(whole=False))
    print(f"{file.name}: {file.stat().st_size // 1024} KiB")


async def main():
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser, browser.tab() as tab:
        await tab.call("Emulation.setScrollbarsHidden", hidden=True)
        with tempfile.TemporaryDirectory() as folder:
            async with demo(folder) as address:
                await tab.show(f"{address}/console/", width=1280)
                await tab.until(f"performance.now() > {WATCH_SECONDS * 1000}", 2 * WATCH_SECONDS)
                for wanted in DEMO:
                    await take(tab, address, *wanted)
        with tempfile.TemporaryDirectory() as folder:
            async with town(Path(folder)) as served:
                sync = (await served.get("/api/changes/companies/syncs")).body["items"][0]["syncId"]
                job = (await served.get("/api/jobs?kind=notify.webhook")).body["jobs"][0]["id"]
                look = (1216, 580, "light", "en")
                await take(tab, served.address, "console-snapshot", f"changes/companies/{sync}", *look)
                await take(tab, served.address, "console-job", f"jobs/{job}", *look)


if __name__ == "__main__":
    asyncio.run(main())
