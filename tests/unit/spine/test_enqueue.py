"""Accepting: what can't be kept is refused aloud, and takes nothing else with it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.contract.bench import Bench, Ears
from tests.postgres_server import fresh_database
from ulak.errors import Conflict
from ulak.spine.units.enqueue import ENQUEUE_ONE, Full
from ulak.stores.postgres.store import PostgresStore
from ulak.stores.sqlite.store import SqliteStore


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


async def test_a_refused_id_takes_no_capacity(bench: Bench):
    row = bench.row()
    await bench.offer(row)
    with pytest.raises(Conflict):
        await bench.offer(row)
    await bench.offer(*[bench.row() for _ in range(9)])
    assert await bench.live() == {"mail": 10}


async def test_of_many_that_come_singly_as_many_are_taken_as_there_is_capacity_for(bench: Bench):
    rows = [bench.row() for _ in range(14)]
    answers = await asyncio.gather(*(bench.store.submit(ENQUEUE_ONE, row) for row in rows))
    taken = [answer for answer in answers if not isinstance(answer, Full)]
    assert len(taken) == 10
    assert taken == [row.id for row, answer in zip(rows, answers, strict=True) if not isinstance(answer, Full)]
    assert await bench.live() == {"mail": 10}


async def test_of_many_that_come_singly_those_with_the_same_unique_key_get_the_id_of_one(bench: Bench):
    rows = [bench.row(unique_key="the one") for _ in range(3)] + [bench.row()]
    answers = await asyncio.gather(*(bench.store.submit(ENQUEUE_ONE, row) for row in rows))
    assert answers == [rows[0].id] * 3 + [rows[3].id]
    assert await bench.live() == {"mail": 2}


async def test_the_earliest_of_those_that_are_put_off_decides_when_to_look(bench: Bench):
    now = bench.store.clock.now()
    await bench.offer(*[bench.row(due_at=now + millis) for millis in (9000, 1000, 5000)])
    await bench.ears.until(lambda: bench.ears.due_at is not None)
    assert bench.ears.due_at == now + 1000
