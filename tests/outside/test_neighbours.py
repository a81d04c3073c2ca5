"""No neighbour pays, seen from outside: a real server with default settings beside receivers that are dead or slow."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.outside.receivers import Receiver, nobody
from tests.outside.served import served
from tests.postgres_server import fresh_database

pytestmark = pytest.mark.slow

IN_APP = {"notificationType": "IN_APP", "recipient": "ada"}
SMS = {"notificationType": "SMS", "recipient": "+905551112233"}
SOON_SECONDS = 2.0  # at once, on a machine that is busy


def webhook(url):
    return {"notificationType": "WEBHOOK", "recipient": url}


async def is_served_at_once(server, request):
    status, seconds, document = await server.post(**request)
    assert status == 202
    assert seconds < SOON_SECONDS
    assert await server.status_of(document["id"], "DELIVERED") == "DELIVERED"


async def test_a_dead_receiver_costs_the_others_nothing(store, tmp_path):
    with nobody() as dead:
        async with Receiver().listening() as alive, served(store, tmp_path) as server:
            assert set(await server.post_many(1600, **webhook(dead))) == {202}
            await is_served_at_once(server, IN_APP)
            await is_served_at_once(server, SMS)
            await is_served_at_once(server, webhook(alive.url))


@pytest.mark.postgres
async def test_two_servers_on_one_database_beside_a_dead_receiver(tmp_path):
    """Each takes half of what is for the dead; both serve all others at once."""
    with fresh_database() as store, nobody() as dead:
        folders = [tmp_path / name for name in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        async with (
            Receiver().listening() as alive,
            served(store, folders[0]) as one,
            served(store, folders[1]) as two,
        ):
            sent = await asyncio.gather(*(server.post_many(800, **webhook(dead)) for server in (one, two)))
            assert {status for statuses in sent for status in statuses} == {202}
            for server in (one, two):
                await is_served_at_once(server, IN_APP)
                await is_served_at_once(server, SMS)
                await is_served_at_once(server, webhook(alive.url))


async def test_a_mail_server_that_is_down_costs_the_others_nothing(store, tmp_path):
    with nobody() as dead:
        port = dead.partition("127.0.0.1:")[2].partition("/")[0]
        mail = {"channels.email.simulated": False, "channels.email.host": "127.0.0.1", "channels.email.port": port}
        async with served(store, tmp_path, **mail) as server:
            sent = await server.post_many(1600, notificationType="EMAIL", recipient="ada@example.org", subject="Hi")
            assert set(sent) == {202}
            await is_served_at_once(server, SMS)
            await is_served_at_once(server, IN_APP)


async def test_what_is_for_tomorrow_holds_up_nothing_of_today(store, tmp_path):
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    async with served(store, tmp_path) as server:
        assert set(await server.post_many(1600, **IN_APP, sendAt=tomorrow)) == {202}
        await is_served_at_once(server, IN_APP)


async def test_slow_receivers_hold_up_no_other(store, tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(Receiver(seconds=10).listening()) for _ in range(11)]
        quick = await stack.enter_async_context(Receiver().listening())
        server = await stack.enter_async_context(served(store, tmp_path))
        for receiver in slow:
            assert set(await server.post_many(20, **webhook(receiver.url))) == {202}
        await is_served_at_once(server, webhook(quick.url))
        await is_served_at_once(server, IN_APP)


@pytest.mark.parametrize("kind_of_receiver", ["dead", "hanging"])
async def test_many_order_keys_to_a_receiver_that_does_not_answer_hold_up_no_other(store, tmp_path, kind_of_receiver):
    async with contextlib.AsyncExitStack() as stack:
        hanging = await stack.enter_async_context(Receiver(seconds=60).listening())
        url = stack.enter_context(nobody()) if kind_of_receiver == "dead" else hanging.url
        quick = await stack.enter_async_context(Receiver().listening())
        server = await stack.enter_async_context(served(store, tmp_path))
        sent = await asyncio.gather(*(server.post(**webhook(url), orderKey=f"customer-{n}") for n in range(1600)))
        assert {status for status, _, _ in sent} == {202}
        await is_served_at_once(server, webhook(quick.url))
        await is_served_at_once(server, webhook(quick.url) | {"orderKey": "somebody"})
        await is_served_at_once(server, IN_APP)


async def test_a_receiver_that_fails_now_and_then_gets_the_good_ones_as_fast_as_one_that_does_not(store, tmp_path):
    async with (
        Receiver().listening() as sound,
        Receiver(failing=20).listening() as flaky,
        served(store, tmp_path) as server,
    ):
        seconds = {}
        for name, receiver in (("sound", sound), ("flaky", flaky)):
            began = time.monotonic()
            assert set(await server.post_many(2000, **webhook(receiver.url))) == {202}
            seconds[name] = await receiver.until(2000) - began
        assert seconds["flaky"] <= 2 * seconds["sound"] + 1
        began = time.monotonic()
        await flaky.until_delivered(2000)
        assert time.monotonic() - began < 20  # the first pause is five seconds, and some at random


async def test_at_a_full_bound_a_request_is_refused_in_time_and_readyz_says_why(store, tmp_path):
    slow = {"notify.capacity": 2, "channels.sms.simulated_delay_seconds": 60, "notify.wait_seconds": 1}
    async with served(store, tmp_path, **slow) as server:
        assert await server.post_many(2, **SMS) == [202, 202]
        status, seconds, _ = await server.post(**SMS)
        assert (status, 0.9 < seconds < 1 + SOON_SECONDS) == (429, True)
        status, seconds, _ = await server.post({"Prefer": "wait=0"}, **SMS)
        assert (status, seconds < SOON_SECONDS) == (429, True)
        ready = await server.get("/readyz")
        assert ready[0] == 200
        assert any("notify.sms has reached its bound of 2 active jobs" in reason for reason in ready[1]["reasons"])
        await is_served_at_once(server, IN_APP)
    log = await asyncio.to_thread((tmp_path / "serve.log").read_text)
    assert log.count("bound_full") == 1
