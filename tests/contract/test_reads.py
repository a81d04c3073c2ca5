"""Reads beside the writers: each has a deadline, and says so when it is over."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench
from ulak.errors import Unavailable
from ulak.spine.query import Query
from ulak.spine.store import Tx
from ulak.stores.writer.read_pool import READ_SECONDS

ENDLESS = Query(
    "endless",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "SELECT pg_sleep(60)",
    (),
)


async def test_a_read_that_takes_too_long_ends_and_says_what_to_do(bench: Bench):
    def read(tx: Tx) -> object:
        bench.clock.advance(READ_SECONDS + 1)  # SQLite's deadline is by our clock
        return tx.rows(ENDLESS)

    with pytest.raises(Unavailable, match="took too long to answer; ask for less at a time"):
        await bench.store.read(read)
    await bench.add()
    assert (await bench.live())["mail"] == 1
