"""Loads of many rows: slice by slice, each in its own commit, in turn with everything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from tests.contract.bench import Bench, ids_of
from ulak.errors import Conflict, Invalid
from ulak.spine.job import NewJob
from ulak.spine.loops.bulk import (
    FIRST_ROWS,
    MAX_ROWS,
    RUN_BULK,
    SliceSize,
    analyze_tables,
    write_in_slices,
)
from ulak.spine.query import Query
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed

SLICE_SECONDS = 0.005
MAKE = "CREATE TABLE IF NOT EXISTS stock (id bigint PRIMARY KEY, batch bigint)"
COUNT = Query("count", "SELECT count(*) FROM stock", "SELECT count(*) FROM stock", ())
ADD = Query(
    "add",
    "INSERT INTO stock (id, batch) VALUES :rows",
    "INSERT INTO stock (id, batch) SELECT * FROM unnest(%(id)s::bigint[], %(batch)s::bigint[])",
    ("id", "batch"),
)


@pytest.fixture
async def stock(bench: Bench):
    await bench.store.write(lambda tx: tx.execute(Query("make", MAKE, MAKE, ())))
    return bench


@pytest.fixture
async def sqlite_stock(opened, tmp_path):
    """Only there do loads and jobs meet: on PostgreSQL a load has a connection of its own."""
    async with opened(f"{tmp_path}/ulak.db") as bench:
        await bench.store.write(lambda tx: tx.execute(Query("make", MAKE, MAKE, ())))
        yield bench


def add(tx: Tx, rows: Sequence[int]) -> int:
    tx.insert_rows(ADD, [(row, 0) for row in rows])
    return len(rows)


async def count(bench: Bench) -> int:
    return int(await bench.store.read(lambda tx: tx.rows(COUNT)[0][0]))


async def test_all_rows_are_written_in_slices_and_in_order(stock: Bench):
    seen: list[int] = []

    def unit(tx: Tx, rows: Sequence[int]) -> int:
        seen.extend(rows)
        return add(tx, rows)

    numbers = await write_in_slices(stock.store, unit, iter(range(3000)))
    assert sum(numbers) == 3000 == await count(stock)
    assert numbers[0] == FIRST_ROWS
    assert len(numbers) > 1
    assert seen == list(range(3000))


@pytest.mark.postgres
async def test_a_load_has_a_connection_of_its_own(opened, database):
    """Jobs are accepted and claimed while a slice is still under way."""
    under_way, go_on = threading.Event(), threading.Event()

    def held_up(_: Tx, rows: Sequence[int]) -> int:
        under_way.set()
        assert go_on.wait(20)
        return len(rows)

    async with opened(database) as bench:
        loading = asyncio.ensure_future(write_in_slices(bench.store, held_up, [1]))
        try:
            assert await asyncio.to_thread(under_way.wait, 20)
            added = await asyncio.wait_for(bench.add(), 20)
            assert ids_of(await asyncio.wait_for(bench.claim(), 20)) == [added]
            assert not loading.done()
        finally:
            go_on.set()
        assert await loading == [1]


async def test_nothing_is_written_for_no_rows(stock: Bench):
    assert await write_in_slices(stock.store, add, ()) == []


async def test_a_slice_that_fails_ends_the_load_and_those_before_it_stay(stock: Bench):
    def unit(tx: Tx, rows: Sequence[int]) -> int:
        if 100 in rows:
            raise Conflict("not this one")
        return add(tx, rows)

    with pytest.raises(Conflict, match="not this one"):
        await write_in_slices(stock.store, unit, range(300))
    assert 0 < await count(stock) <= 100


async def test_no_two_bulk_items_share_a_commit_and_jobs_wait_for_one_at_most(stock: Bench):
    commits: list[Tx] = []
    order: list[str] = []

    def slow(tx: Tx) -> None:
        commits.append(tx)
        order.append("bulk")

    def quick(tx: Tx) -> None:
        commits.append(tx)
        order.append("unit")

    bulk = [stock.store.submit(RUN_BULK, slow) for _ in range(4)]
    units = [stock.store.write(quick) for _ in range(4)]
    await asyncio.gather(*bulk, *units)
    slices = [tx for tx, word in zip(commits, order, strict=True) if word == "bulk"]
    others = [tx for tx, word in zip(commits, order, strict=True) if word == "unit"]
    assert len({id(tx) for tx in slices}) == 4
    assert not {id(tx) for tx in slices[1:]} & {id(tx) for tx in others}


class HeldUp:
    """A bulk item that is under way until it may go on."""

    def __init__(self) -> None:
        self.under_way, self.go_on = threading.Event(), threading.Event()
        self.seen: list[Tx] = []

    def __call__(self, tx: Tx) -> int:
        self.seen.append(tx)
        self.under_way.set()
        assert self.go_on.wait(20)
        return add(tx, [len(self.seen)])


async def test_jobs_that_come_while_a_bulk_item_runs_share_its_commit(sqlite_stock: Bench):
    item, shared = HeldUp(), []
    before = sqlite_stock.store.gauges()["commits_total"]
    loading = asyncio.ensure_future(sqlite_stock.store.submit(RUN_BULK, item))
    assert await asyncio.to_thread(item.under_way.wait, 20)
    late = [asyncio.ensure_future(sqlite_stock.store.write(shared.append)) for _ in range(3)]
    await asyncio.sleep(0)
    item.go_on.set()
    await asyncio.gather(loading, *late)
    assert shared == item.seen * 3
    assert sqlite_stock.store.gauges()["commits_total"] == before + 1


async def test_a_unit_that_fails_beside_a_bulk_item_fails_alone(sqlite_stock: Bench):
    item = HeldUp()
    loading = asyncio.ensure_future(sqlite_stock.store.submit(RUN_BULK, item))
    assert await asyncio.to_thread(item.under_way.wait, 20)
    good = asyncio.ensure_future(sqlite_stock.store.write(add, [100]))
    bad = asyncio.ensure_future(sqlite_stock.store.write(add, [100]))
    await asyncio.sleep(0)
    item.go_on.set()
    assert await asyncio.gather(loading, good) == [1, 1]
    with pytest.raises(Conflict):
        await bad
    assert await count(sqlite_stock) == 2


async def test_jobs_that_are_owed_by_a_load_are_claimed_at_once(stock: Bench):

    await write_in_slices(stock.store, lambda tx, rows: enqueue_owed(tx, [NewJob("mail", row) for row in rows]), [1, 2])
    assert len(await stock.claim()) == 2


async def test_tables_are_analyzed_after_a_load(stock: Bench):
    await write_in_slices(stock.store, add, range(500))
    await analyze_tables(stock.store, "stock")
    with pytest.raises(Invalid, match="table's name"):
        await analyze_tables(stock.store, "stock; DROP TABLE job")


def sizes(seconds_per_row: float) -> Iterator[int]:
    size = SliceSize(SLICE_SECONDS)
    for _ in range(20):
        yield size.rows
        size.adapt(size.rows, size.rows * seconds_per_row)


@pytest.mark.parametrize(("seconds_per_row", "rows"), [(SLICE_SECONDS / 100, 100), (1.0, 1), (1e-9, MAX_ROWS)])
def test_slices_adapt_to_their_time(seconds_per_row: float, rows: int):
    assert list(sizes(seconds_per_row))[-1] == rows


def test_slices_of_cheap_rows_do_not_shrink_below_what_is_asked_for():
    size = SliceSize(SLICE_SECONDS, 200)
    assert size.rows == 200
    size.adapt(200, 10.0)
    assert size.rows == 200


def test_a_short_last_slice_tells_nothing():
    size = SliceSize(SLICE_SECONDS)
    size.adapt(1, 10.0)
    assert size.rows == FIRST_ROWS
