"""PostgreSQL: the log follows the order of commits, also for a caller's transaction that was open for long."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ulak.spine.units.prune import PRUNE, Ages
from ulak.stores.postgres import relay as postgres_relay

pytestmark = pytest.mark.postgres


async def test_what_a_long_transaction_has_accepted_is_told_before_it_starts(opened, database, monkeypatch):
    monkeypatch.setattr(postgres_relay, "_LATE", 3)
    monkeypatch.setattr(postgres_relay, "FULL_SECONDS", 3600.0)
    async with opened(database) as bench:
        async with await psycopg.AsyncConnection.connect(database) as connection:
            (late,) = await bench.store.enqueue_in(connection, [bench.row("slow")])
            for _ in range(10):
                await bench.add("other")
            await bench.events(10)
            await connection.commit()
        async with asyncio.timeout(30):
            while ("slow", 2) not in bench.ears.ready:  # the word of the commit has come
                await asyncio.sleep(0.001)
        await bench.settle(await bench.claim("slow"))
        told = [event.name for event in await bench.events(13) if event.job == late]
    assert told == ["accepted", "started", "done"]


async def test_what_was_committed_late_is_not_pruned_from_between_younger_events(opened, database, clock):
    async with opened(database) as bench:
        async with await psycopg.AsyncConnection.connect(database) as connection:
            await bench.store.enqueue_in(connection, [bench.row("late")])
            clock.advance(30)
            await bench.add("before")
            await bench.events(1)
            await connection.commit()
        await bench.events(2)
        await bench.add("after")
        assert [one.kind for one in await bench.events(3)] == ["before", "late", "after"]
        clock.advance(31)
        await bench.store.submit(PRUNE, Ages(60_000, 60_000, 60_000))
        assert [one.kind for one in await bench.events(3)] == ["before", "late", "after"]
        clock.advance(30)
        await bench.store.submit(PRUNE, Ages(60_000, 60_000, 60_000))
        assert [one.kind for one in await bench.events(1)] == ["after"]
