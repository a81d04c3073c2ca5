"""What is kept for days can be much: the pruner looks only at what may be old enough."""

from __future__ import annotations

import re

import pytest

from tests.contract.bench import Bench, sql
from ulak.spine.query import Query
from ulak.spine.store import Tx


def explained(tx: Tx, query: Query, **parameters: int) -> str:
    explain = Query(
        query.name, f"EXPLAIN QUERY PLAN {query.sqlite}", f"EXPLAIN {query.postgres}", query.postgres_parameters
    )
    return " ".join(str(row) for row in tx.all(explain, **parameters))


@pytest.mark.parametrize("table", ["past", "dead"])
async def test_the_pruner_goes_along_the_ids_up_to_the_oldest_that_stay(bench: Bench, table: str):
    query = {"past": sql.prune_past, "dead": sql.prune_dead}[table]
    plan = await bench.store.write(explained, query, before=1, oldest_id=1, n=1)
    assert re.search(r"rowid<\?|Index Cond: \(\(?id < ", plan), plan
    assert "SCAN" not in plan
    assert "Seq Scan" not in plan
