"""Push: from a publication to its changes at a stream, at the webhook of a watch, and at the job of another.

python -m bench.changes_push [--users 5000] [--rounds 20] [--store sqlite|postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from uuid import UUID

import aiohttp
import uvloop
from aiohttp import web

from bench.changes import told
from bench.load import percentile
from ulak import Job, Ulak
from ulak.changes import records
from ulak.changes.generator import Plan, write_lists
from ulak.http.app import build_app
from ulak.http.server import address_of, listen, listening
from ulak.settings import load

FEED = "einvoice"


class _Arrivals:
    """When each change reached each way of push: milliseconds of the wall clock, as the store has them."""

    def __init__(self) -> None:
        self.by_way: dict[str, list[float]] = {"stream": [], "webhook": [], "job": []}

    def note(self, way: str, number: int = 1) -> None:
        self.by_way[way] += [time.time() * 1000] * number

    async def take(self, number: int) -> dict[str, list[float]]:
        async with asyncio.timeout(60):
            while any(len(times) < number for times in self.by_way.values()):
                await asyncio.sleep(0.01)
        taken, self.by_way = self.by_way, {way: [] for way in self.by_way}
        return taken


async def _receiver(arrivals: _Arrivals, stack: contextlib.AsyncExitStack) -> str:
    async def take(request: web.Request) -> web.Response:
        arrivals.note("webhook", len((await request.json())["changes"]))
        return web.Response()

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}/"


async def _read(url: str, arrivals: _Arrivals, begun: asyncio.Event) -> None:
    async with aiohttp.ClientSession() as session, session.get(url) as stream:
        async for line in stream.content:
            begun.set()
            if line.startswith(b"event: change"):
                arrivals.note("stream")


async def measure(address: str, folder: Path, users: int, rounds: int) -> None:
    lists = write_lists(folder / "lists", Plan(users))
    urls = {f"changes.gib.{role.lower()}_url": path.as_uri() for role, path in lists.items()}
    given = {"store": address, "http.port": 0, "changes.folder": str(folder / "changes"), **urls}
    given |= {"channels.webhook.allow": "127.0.0.1/32", "changes.modified_percent": 100, "changes.removal_percent": 100}
    ulak, arrivals = Ulak(settings=load(env={}, overrides=given).settings), _Arrivals()

    @ulak.handles("bench.changed")
    async def changed(job: Job) -> None:
        arrivals.note("job", len(job.payload["changes"]))

    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(ulak)
        listener = stack.enter_context(contextlib.closing(listen(ulak.settings.http)))
        door = build_app(ulak)
        await stack.enter_async_context(door.life())
        await stack.enter_async_context(listening(door, listener))
        await ulak.changes.sync("gib")
        await ulak.changes.watch(FEED, webhook=await _receiver(arrivals, stack))
        await ulak.changes.watch(FEED, kind="bench.changed")
        begun = asyncio.Event()
        url = f"{address_of(listener)}/api/v1/{FEED}/log/stream"
        reading = asyncio.create_task(_read(url, arrivals, begun))
        stack.callback(reading.cancel)
        await begun.wait()
        late: dict[str, list[float]] = {way: [] for way in arrivals.by_way}
        for generation in range(1, rounds + 1):
            write_lists(folder / "lists", Plan(users, generation))
            report = await ulak.changes.sync("gib")
            one = report.feeds[FEED]
            number = one.added + one.modified + one.removed
            identifier = ulak.store.ids.from_uuid(UUID(report.sync_id))
            row = await ulak.store.read(records.read_sync, "gib", identifier)
            for way, times in (await arrivals.take(number)).items():
                late[way] += [at - row.ended_at for at in times]
        for way, values in late.items():
            figures = {"changes": len(values), "p50_ms": percentile(values, 50), "p99_ms": percentile(values, 99)}
            told(f"push to a {way}", {**figures, "max_ms": max(values)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        address = f"sqlite:///{name}/ulak.db"
        if given.store == "postgres":
            from tests.postgres_server import fresh_database

            address = stack.enter_context(fresh_database())
        uvloop.run(measure(address, Path(name), given.users, given.rounds))


if __name__ == "__main__":
    main()
