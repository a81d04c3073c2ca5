"""Updates of many rows at once say how many there were to change."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench
from ulak.spine.query import Queries

sql = Queries("ulak.spine")


@pytest.mark.parametrize(("name", "values"), [("doubt_jobs", (1, "[]")), ("ready_jobs", (1,))])
async def test_an_update_of_many_answers_how_many_rows_it_changed(bench: Bench, name: str, values: tuple[object, ...]):
    first, second = await bench.add(), await bench.add()
    rows = [(*values, one) for one in (first, 4711, second)]
    assert await bench.store.write(lambda tx: tx.update_rows(getattr(sql, name), rows)) == 2
