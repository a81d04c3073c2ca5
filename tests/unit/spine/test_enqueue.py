"""Accepting: what can't be kept is refused aloud, and takes nothing else with it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.contract.bench import Bench, Ears
from tests.postgres_server import fresh_database
from ulak.errors import Conflict
from ulak.stores.postgres import PostgresStore
from ulak.stores.sqlite import SqliteStore


def _capacity(pool):
    return 10


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
async def bench(request, clock):
    with fresh_database() if request.param == "postgres" else contextlib.nullcontext() as address:
        store = PostgresStore(address, clock, _capacity) if address else SqliteStore(None, clock, _capacity)
        ears = Ears()
        await store.open(ears)
        yield Bench(store, ears, clock)
        await store.close()


async def test_an_id_that_is_there_already_is_refused_and_its_neighbours_are_kept(bench: Bench):
    row = bench.row()
    await bench.offer(row)
    others = [bench.row() for _ in range(3)]
    answers = await asyncio.gather(*(bench.offer(one) for one in [*others, row]), return_exceptions=True)
    assert answers[:3] == [[one.id] for one in others]
    assert isinstance(answers[3], Conflict)
    assert await bench.live() == {"mail": 4}
    assert await bench.tally() == {"accepted": 4}
    assert [event.job for event in await bench.events(4)] == [row.id, *(one.id for one in others)]


async def test_a_refused_id_takes_no_room(bench: Bench):
    row = bench.row()
    await bench.offer(row)
    with pytest.raises(Conflict):
        await bench.offer(row)
    await bench.offer(*[bench.row() for _ in range(9)])
    assert await bench.live() == {"mail": 10}
