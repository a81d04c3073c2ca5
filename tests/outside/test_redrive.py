"""kill -9 in the middle of a redrive at a rate, seen from outside: what is told afterwards is true."""

from __future__ import annotations

import asyncio

import pytest

from tests.outside.served import served

pytestmark = pytest.mark.slow

FORBIDDEN = {"notificationType": "WEBHOOK", "recipient": "http://10.0.0.1/hook"}  # the guard lets nobody there


async def progress_until(server, fits):
    async with asyncio.timeout(60):
        while not fits(found := (await server.get("/api/dead/redrive"))[1]):
            await asyncio.sleep(0.05)
    return found


async def test_a_killed_redrive_is_told_as_failed_and_the_rest_goes_with_the_next(store, tmp_path):
    async with served(store, tmp_path) as server:
        for _ in range(3):
            accepted = (await server.post(**FORBIDDEN))[2]["id"]
            await server.status_of(accepted, "FAILED")
        assert (await server.ask("POST", "/api/dead/redrive", {"all": True, "ratePerSecond": 0.01}))[0] == 200
        await progress_until(server, lambda found: found["redriven"] == 1)
        server.process.kill()
        await asyncio.to_thread(server.process.wait, 60)
    async with served(store, tmp_path) as server:
        found = await progress_until(server, lambda found: found["state"] != "running")
        assert (found["state"], found["redriven"], found["matched"]) == ("failed", 1, 3)
        assert "start again for the rest" in found["reason"]
        status, begun = await server.ask("POST", "/api/dead/redrive", {"all": True, "ratePerSecond": 100})
        assert (status, begun["continues"]) == (200, True)
        ended = await progress_until(server, lambda found: found["state"] == "ended")
        assert ended["redriven"] >= 2  # the one that went before may have died again meanwhile
