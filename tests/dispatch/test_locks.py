"""PostgreSQL: batches of several processes that want the same rows wait for one another, however busy the machine."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.dispatch.conftest import request, settle_in
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.dispatch.model import TaskState

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# Longer than a batch waits for what a stranger may hold for ever: four times its lock_timeout, and once for each item.
WAITS_LONG = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND now() - xact_start > interval '1.8 s'"""


@pytest.mark.parametrize("table", ["dispatch_task", "dispatch_helper"])
async def test_an_answer_waits_for_a_batch_of_another_process_that_is_slow(table):
    with fresh_database() as address, psycopg.connect(address, autocommit=True) as onlooker:
        async with Ulak(address, work=False) as ulak:
            await settle_in(ulak, 1)
            task = (await ulak.dispatch.open(request())).task.id
            with psycopg.connect(address) as other:
                other.execute(f"SELECT FROM {table} FOR UPDATE".encode())
                answer = asyncio.create_task(ulak.dispatch.accept(task, "h0"))
                async with asyncio.timeout(10):
                    while not answer.done() and onlooker.execute(WAITS_LONG).fetchone() == (0,):
                        await ulak.clock.wait(asyncio.Event(), 0.02)
            assert (await answer).task.state is TaskState.ASSIGNED
