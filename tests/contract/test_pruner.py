"""What is kept for days can be much: the pruner looks only at what may be old enough."""

from __future__ import annotations

import re

import pytest

from tests.contract.bench import Bench, sql
from ulak.spine.breaker import Breaker, load_breakers, save_breakers
from ulak.spine.query import Query
from ulak.spine.store import Tx
from ulak.spine.units.prune import BREAKER_MILLIS, PRUNE, Ages


def explained(tx: Tx, query: Query, **parameters: int) -> str:
    explain = Query(
        query.name, f"EXPLAIN QUERY PLAN {query.sqlite}", f"EXPLAIN {query.postgres}", query.postgres_parameters
    )
    return " ".join(str(row) for row in tx.rows(explain, **parameters))


@pytest.mark.parametrize("table", ["past", "dead"])
async def test_the_pruner_goes_along_the_ids_up_to_the_oldest_that_stay(bench: Bench, table: str):
    query = {"past": sql.prune_past, "dead": sql.prune_dead}[table]
    plan = await bench.store.write(explained, query, before=1, oldest_id=1, n=1)
    assert re.search(r"rowid<\?|Index Cond: \(\(?id < ", plan), plan
    assert "SCAN" not in plan
    assert "Seq Scan" not in plan


async def test_a_breaker_that_nobody_has_used_for_a_day_is_removed(bench: Bench):
    now = bench.clock.now()
    ages = {"unused": BREAKER_MILLIS + 1, "rested": BREAKER_MILLIS, "open": -5000}
    kept = [Breaker(name, "open", 10, 1, now - age) for name, age in ages.items()]
    await bench.store.write(save_breakers, kept)
    pruned = await bench.store.submit(PRUNE, Ages(BREAKER_MILLIS, BREAKER_MILLIS, BREAKER_MILLIS))
    assert pruned["breaker"] == 1
    assert [one.destination for one in await bench.store.read(load_breakers)] == ["open", "rested"]
