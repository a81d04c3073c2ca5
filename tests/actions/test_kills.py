"""Processes killed at every point of a step's life: no accepted run is lost, every second send is explained."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.ids import Ids
from ulak.settings import Settings

ROOT = Path(__file__).parents[2]
NUMBER = 40
POINTS = [
    ("writer.before_commit", 12),
    ("writer.after_commit", 12),
    ("worker.before_handler", 20),
    ("worker.after_handler", 20),
    ("worker.before_settle", 6),
    ("worker.settled", 6),
]


@contextlib.asynccontextmanager
async def provider():
    seen: Counter[tuple[int, str]] = Counter()

    async def take(request: web.Request) -> web.Response:
        told = await request.json()
        seen[told["metadata"]["step_order"], told["body"]] += 1
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", seen
    finally:
        await runner.cleanup()


async def _child(address: str, hook: str, begin: int, *dying: str) -> tuple[int, dict[int, str]]:
    """Its exit code, and the runs that it told of before it ended."""
    command = [sys.executable, "-m", "tests.actions.child", address, hook, str(begin), str(NUMBER), *dying]
    child = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(90):
        told, problems = await child.communicate()
    lines = [line.split() for line in told.decode().splitlines() if line and line[0].isdigit() and " " in line]
    runs = {int(line[0]): line[1] for line in lines if len(line) == 2}
    assert child.returncode in {0, -9}, problems.decode()[-2000:]
    return child.returncode or 0, runs


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_no_accepted_run_is_lost_and_every_second_send_is_marked_uncertain(store, tmp_path):
    with contextlib.ExitStack() as stack:
        address = f"sqlite:///{tmp_path}/ulak.db" if store == "sqlite" else stack.enter_context(fresh_database())
        accepted: dict[int, str] = {}
        async with provider() as (hook, seen):
            for place, (point, after) in enumerate(POINTS if store == "sqlite" else POINTS[1:4]):
                _, runs = await _child(address, hook, place * NUMBER, point, str(after))
                accepted |= runs
            code, runs = await _child(address, hook, len(POINTS) * NUMBER)
            accepted |= runs
            assert code == 0
            await _check(address, accepted, seen)


async def _check(address: str, accepted: dict[int, str], seen: Counter[Any]) -> None:
    async with Ulak(address, settings=Settings(store=address), work=False) as ulak:
        watched = await ulak.actions.watchdog()
        assert (watched["difference"], watched["waiting"]) == (0, 0)
        for n, run in accepted.items():
            view = await ulak.actions.run(run)
            assert view["state"] == "done", view
            for step in view["steps"]:
                assert seen[step["step_order"], str(n)] >= 1
                if seen[step["step_order"], str(n)] > 1:
                    assert await _is_marked(ulak, ulak.store.ids, step), (n, step)
        executed, _ = await ulak.actions.messages(topic="cinga.action.executed", limit=1000)
        keys = Counter((one["value"]["meta"]["trace_id"], one["value"]["data"]["step_order"]) for one in executed)
        assert max(keys.values()) == 1


async def _is_marked(ulak: Ulak, ids: Ids, step: dict[str, Any]) -> bool:
    job = ids.from_uuid(step["provider_message_id"].partition(":")[2])
    assert job is not None
    return any(entry.word == "uncertain" for entry in (await ulak.jobs.get(job)).timeline)
