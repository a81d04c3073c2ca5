"""A stop, seen from outside: a request that waits at a bound is told, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import pytest

from tests.outside.served import served
from tests.postgres_server import fresh_database

pytestmark = pytest.mark.slow

SMS = {"notificationType": "SMS", "recipient": "+905551112233"}
ONE_AT_A_TIME = {"notify.capacity": 1, "notify.admission": "block", "channels.sms.simulated_delay_seconds": 3}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request, tmp_path):
    with contextlib.ExitStack() as stack:
        if request.param == "postgres":
            yield stack.enter_context(fresh_database())
        else:
            yield "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/ulak.db"


async def waits_at_the_bound(server):
    async with asyncio.timeout(30):
        while not any("bound of 1" in reason for reason in (await server.get("/readyz"))[1].get("reasons", [])):
            await asyncio.sleep(0.02)


async def test_a_put_that_a_stop_interrupts_is_503_and_nothing_of_it_is_kept(store, tmp_path):
    async with served(store, tmp_path, **ONE_AT_A_TIME) as server:
        status, _, accepted = await server.post(**SMS)
        assert status == 202
        waiting = asyncio.create_task(server.post(**SMS))
        await waits_at_the_bound(server)
        server.process.send_signal(signal.SIGTERM)
        status, _, refused = await waiting
        assert (status, refused["error"]) == (503, "unavailable")
        assert await asyncio.to_thread(server.process.wait, 60) == 0
    log = await asyncio.to_thread((tmp_path / "serve.log").read_text)
    assert "discarded" not in log  # the one that was accepted was delivered, and there was no other
    if store == "memory:":
        return
    async with served(store, tmp_path) as server:
        assert await server.status_of(accepted["id"], "DELIVERED") == "DELIVERED"
        assert [one["id"] for one in (await server.get("/api/notifications"))[1]["items"]] == [accepted["id"]]
