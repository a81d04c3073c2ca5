"""PostgreSQL: a recount puts right what was lost with a process, and changes nothing else."""

from __future__ import annotations

import asyncio

import pytest

from ulak.spine.enqueue import Full

pytestmark = pytest.mark.postgres


async def test_jobs_that_are_accepted_in_the_moment_of_a_recount_do_not_change_the_bound(opened, database):
    async with opened(database, bounds={"mail": 100}) as bench:  # a block is twelve: seven are left in memory
        await asyncio.gather(bench.offer(*[bench.row() for _ in range(5)]), bench.store.recount())
        assert not isinstance(await bench.offer(*[bench.row() for _ in range(95)]), Full)
        assert isinstance(await bench.offer(bench.row()), Full)
