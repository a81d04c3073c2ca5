"""The share of a destination in what its kind may park, filled through the HTTP door and read from the rows."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from bisect import bisect_left
from typing import NamedTuple

import psycopg
import pytest

from tests.outside.receivers import Receiver
from tests.outside.served import served
from tests.postgres_server import fresh_database

pytestmark = pytest.mark.slow

CAPACITY = 1800
SLOTS = 8
AT_ONCE = {"Prefer": "wait=0"}
COUNT = """
SELECT key, sum(CASE WHEN state IN (1, 3) THEN 1 ELSE 0 END), count(*) FROM job
WHERE kind = 'notify.webhook' GROUP BY key
"""


class Filled(NamedTuple):
    """By destination, how many are parked; and how many more jobs of the kind there may be."""

    parked: dict[str, int]
    free: int


def rows_of(store: str) -> Filled:
    with contextlib.ExitStack() as stack:
        if store.startswith("sqlite"):
            path = store.removeprefix("sqlite:///")
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)))
            found = connection.execute(COUNT).fetchall()
        else:
            found = stack.enter_context(psycopg.connect(store)).execute(COUNT).fetchall()
    return Filled({key: int(parked) for key, parked, _ in found}, CAPACITY - sum(live for _, _, live in found))


@contextlib.asynccontextmanager
async def hanging(number: int):
    """Receivers that take a message and do not answer while a test lasts."""
    async with contextlib.AsyncExitStack() as stack:
        yield [(await stack.enter_async_context(Receiver(seconds=600).listening())).url for _ in range(number)]


def webhook(url: str) -> dict[str, str]:
    return {"notificationType": "WEBHOOK", "recipient": url}


async def fill(server, urls: list[str], each: int) -> list[dict]:
    """Send to all in turn, and as many at once as the client may; answers the refusals."""
    answers = await asyncio.gather(*(server.post(AT_ONCE, **webhook(url)) for _ in range(each) for url in urls))
    assert {status for status, _, _ in answers} == {202, 429}
    return [document for status, _, document in answers if status == 429]


async def test_one_destination_alone_parks_half_and_the_refusal_names_it(store, tmp_path):
    async with hanging(2) as (url, other), served(store, tmp_path, **{"spine.capacity": CAPACITY}) as server:
        refusals = await fill(server, [url], CAPACITY * 2 // 3)
        filled = await asyncio.to_thread(rows_of, store)
        (key,) = filled.parked
        assert all(key in str(refusal) for refusal in refusals)
        assert abs(filled.parked[key] - filled.free) <= SLOTS
        assert abs(filled.parked[key] - CAPACITY // 2) <= SLOTS
        assert (await server.post(AT_ONCE, **webhook(other)))[0] == 202


async def test_eight_destinations_that_fill_together_park_a_ninth_each_and_a_ninth_stays_free(store, tmp_path):
    async with hanging(9) as (*urls, other), served(store, tmp_path, **{"spine.capacity": CAPACITY}) as server:
        await fill(server, urls, CAPACITY // 6)
        filled = await asyncio.to_thread(rows_of, store)
        ninth = (CAPACITY - 8 * SLOTS) / 9
        assert len(filled.parked) == 8
        for number in (*filled.parked.values(), filled.free):
            assert abs(number - ninth) <= ninth / 10
        assert (await server.post(AT_ONCE, **webhook(other)))[0] == 202


async def test_destinations_that_fill_one_after_another_park_half_of_what_is_free_each(store, tmp_path):
    async with hanging(4) as (*urls, other), served(store, tmp_path, **{"spine.capacity": CAPACITY}) as server:
        free, seen = CAPACITY, set[str]()
        for url in urls:
            await fill(server, [url], free * 2 // 3)
            filled = await asyncio.to_thread(rows_of, store)
            (key,) = set(filled.parked) - seen
            seen.add(key)
            assert abs(filled.parked[key] - free // 2) <= SLOTS
            free = filled.free
        assert (await server.post(AT_ONCE, **webhook(other)))[0] == 202


@pytest.mark.postgres
async def test_of_two_servers_each_exceeds_a_share_by_no_more_than_the_other_accepts_in_a_second(tmp_path):
    capacity = 4 * CAPACITY  # half of it is far more than both accept in a second
    accepted: list[list[float]] = [[], []]

    async def send(server, mine: list[float], url: str) -> None:
        status, _, _ = await server.post(AT_ONCE, **webhook(url))
        if status == 202:
            mine.append(time.monotonic())

    with fresh_database() as store:
        async with contextlib.AsyncExitStack() as stack:
            url, other = await stack.enter_async_context(hanging(2))
            servers = []
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                setting = {"spine.capacity": capacity}
                servers.append(await stack.enter_async_context(served(store, tmp_path / name, **setting)))
            await asyncio.gather(
                *(
                    send(server, mine, url)
                    for _ in range(capacity // 2)
                    for server, mine in zip(servers, accepted, strict=True)
                )
            )
            filled = await asyncio.to_thread(rows_of, store)
            assert (await servers[0].post(AT_ONCE, **webhook(other)))[0] == 202
    (parked,) = filled.parked.values()
    overshoot = max(in_a_second(sorted(mine)) for mine in accepted)
    assert parked <= capacity // 2 + overshoot


def in_a_second(instants: list[float]) -> int:
    """The most that were within a second."""
    return max(place + 1 - bisect_left(instants, at - 1.0) for place, at in enumerate(instants))
