"""PostgreSQL: a recount puts right what was lost with a process, and changes nothing else."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ulak.spine.capacity import live_pool
from ulak.spine.units.enqueue import Full
from ulak.stores.postgres.connections import connect
from ulak.stores.postgres.recount import recount

pytestmark = pytest.mark.postgres


async def test_jobs_that_are_accepted_in_the_moment_of_a_recount_do_not_change_the_bound(opened, database):
    async with opened(database, bounds={"mail": 100}) as bench:  # a block is twelve: seven are left in memory
        await asyncio.gather(bench.offer(*[bench.row() for _ in range(5)]), bench.store.recount())
        assert not isinstance(await bench.offer(*[bench.row() for _ in range(95)]), Full)
        assert isinstance(await bench.offer(bench.row()), Full)


async def test_credit_of_one_who_is_declared_dead_during_a_recount_is_found_by_the_next(opened, database, monkeypatch):
    async with opened(database, bounds={"few": 80}) as living, opened(database, bounds={"few": 80}) as dying:
        await dying.add("few")
        await dying.events(1)  # now its credit is in the table of that name

        def declare_dead(kind: str) -> str:
            with psycopg.connect(database) as stranger:
                stranger.execute("UPDATE owner SET dead_at = 1 WHERE id = %s", (dying.store.owner,))
            return live_pool(kind)

        monkeypatch.setattr("ulak.stores.postgres.recount.live_pool", declare_dead)  # in the midst of it
        with connect(database) as connection:
            recount(connection)
        dying.store._credits.forget()
        living.clock.advance(10)
        await living.store.maintain()
        assert not isinstance(await living.offer(*[living.row("few") for _ in range(79)]), Full)
        assert isinstance(await living.offer(living.row("few")), Full)
