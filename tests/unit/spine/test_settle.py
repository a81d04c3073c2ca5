"""One attempt is settled once, whoever says so how often; the log's last word on a job is where it stands."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from tests.contract.bench import Bench, Ears
from tests.postgres_server import fresh_database
from ulak.spine.outcome import Cancel, Done, Release, Settlement, Snooze
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.records import read_record
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.spine.units.settle import SETTLE
from ulak.stores.postgres.store import PostgresStore
from ulak.stores.sqlite.store import SqliteStore


def _capacity(pool):
    return 100


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
async def bench(request, clock):
    with fresh_database() if request.param == "postgres" else contextlib.nullcontext() as address:
        store = PostgresStore(address, clock, _capacity) if address else SqliteStore(None, clock, _capacity)
        ears = Ears()
        await store.open(ears)
        yield Bench(store, ears, clock)
        await store.close()


async def test_of_several_workers_in_one_commit_each_hears_of_its_own(bench: Bench):
    await bench.offer(*[bench.row() for _ in range(3)])
    first, second, third = await bench.claim()
    gone = replace(third, epoch=9)
    answers = await asyncio.gather(bench.settle([first]), bench.settle([second, gone]))
    assert answers == [{(first.id, 1)}, {(second.id, 1)}]


async def test_an_attempt_that_is_settled_twice_in_one_commit_is_done_once(bench: Bench):
    for _ in range(2):
        await bench.add(key="k", continuation="after")
    leases = await bench.claim()
    settled = await asyncio.gather(bench.settle(leases), bench.settle(leases))
    assert settled[0] == {(leases[0].id, 1)}
    assert await bench.live() == {"mail": 1, "after": 1}
    assert (await bench.tally())["done"] == 1
    assert len(await bench.claim()) == 1


async def test_a_job_that_is_snoozed_twice_in_one_commit_gets_its_attempt_back_once(bench: Bench):
    identifier = await bench.add()
    (lease,) = await bench.claim()
    await bench.settle([lease, lease], Snooze(1.0), resume_at=bench.clock.now())
    await bench.promote_due()
    assert [(one.id, one.attempt) for one in await bench.claim()] == [(identifier, 1)]


@pytest.mark.parametrize("outcome", [Done(), Cancel()])
@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_stale_result_does_not_hide_the_new_one_that_comes_with_it(bench: Bench, outcome, newest_first):
    await bench.add()
    (old,) = await bench.claim()
    await bench.settle([old], Release())
    (new,) = await bench.claim()
    pair = [new, old] if newest_first else [old, new]
    settlements = [Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, outcome) for one in pair]
    assert await bench.store.submit(SETTLE, settlements) == {(new.id, new.epoch)}
    assert await bench.live() == {}


@pytest.mark.parametrize("hold", [1, 0])
async def test_the_timeline_tells_of_an_attempt_that_was_cut_off(bench: Bench, hold):
    identifier = await bench.add(hold=hold)
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    await bench.settle(await bench.claim_suspects())
    record = await bench.store.read(read_record, identifier)
    assert record is not None
    after = ["dead"] if hold else ["started", "done"]
    assert [entry.word for entry in record.timeline] == ["accepted", "started", "uncertain", *after]
    assert record.crashes == 1


@pytest.mark.parametrize("hold", [1, 0])
async def test_what_becomes_of_rescued_work_is_said_after_that_it_is_uncertain(bench: Bench, hold):
    identifier = await bench.add(hold=hold)
    await bench.claim()
    if not hold:
        await bench.store.submit(CANCEL, identifier)
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    said = [event.name for event in await bench.events(4)]
    assert said == ["accepted", "started", "uncertain", "dead" if hold else "cancelled"]
