"""SQLite: a claim that comes with new jobs starts them in the commit that accepts them."""

from __future__ import annotations

import asyncio

import pytest

from ulak import codec
from ulak.errors import Conflict
from ulak.spine.job import BEHIND, LEASED, READY


@pytest.fixture
async def bench(opened, tmp_path):
    async with opened(f"{tmp_path}/ulak.db") as found:
        yield found


async def together(*work):
    """What is asked for in one turn of the loop shares a commit."""
    return await asyncio.gather(*work, return_exceptions=True)


async def states(bench):
    rows = await bench.store.read(
        lambda tx: tx._connection.execute(
            "SELECT id, state, attempt, epoch, owner, started_at FROM job ORDER BY id"
        ).fetchall()
    )
    return {row[0]: row[1:] for row in rows}


async def test_it_is_accepted_and_started_by_one_commit(bench):
    before = bench.store.gauges()["commits_total"]
    identifier, leases = await together(bench.add(payload={"to": "ada"}), bench.claim())
    assert bench.store.gauges()["commits_total"] == before + 1
    (lease,) = leases
    assert (lease.id, lease.epoch, lease.attempt, codec.decode(lease.payload)) == (identifier, 1, 1, {"to": "ada"})
    now = bench.store.clock.now()
    assert await states(bench) == {identifier: (LEASED, 1, 1, bench.store.owner, now)}
    assert [(event.name, event.job) for event in await bench.events(2)] == [
        ("accepted", identifier),
        ("started", identifier),
    ]
    assert await bench.settle(leases) == {(identifier, 1)}
    assert await bench.tally() == {"accepted": 1, "done": 1}


async def test_who_waited_goes_first(bench):
    older = await bench.add()
    newer, leases = await together(bench.add(), bench.claim(free=1))
    assert [lease.id for lease in leases] == [older]
    assert (await states(bench))[newer][0] == READY


async def test_the_capacity_of_a_claim_is_kept(bench):
    *ids, leases = await together(*(bench.add() for _ in range(3)), bench.claim(free=2))
    assert [lease.id for lease in leases] == ids[:2]
    assert [row[0] for row in (await states(bench)).values()] == [LEASED, LEASED, READY]


async def test_other_kinds_and_levels_wait(bench):
    other, low, leases = await together(bench.add("sms"), bench.add(prio=3), bench.claim(levels=(2,)))
    assert leases == []
    assert [row[0] for row in (await states(bench)).values()] == [READY, READY]
    assert set(await states(bench)) == {other, low}


async def test_a_job_behind_its_key_waits_for_its_slot(bench):
    first, second, leases = await together(bench.add(key="ada"), bench.add(key="ada"), bench.claim())
    assert [lease.id for lease in leases] == [first]
    assert (await states(bench))[second][0] == BEHIND


async def test_one_that_is_not_due_is_not_started(bench):
    now = bench.store.clock.now()
    identifier, leases = await together(bench.add(due_at=now + 1000), bench.claim())
    assert leases == []
    assert set(await states(bench)) == {identifier}


async def test_one_that_is_too_old_is_not_run(bench):
    now = bench.store.clock.now()
    _, leases = await together(bench.add(expires_at=now), bench.claim())
    assert leases == []
    assert await bench.tally() == {"accepted": 1, "expired": 1}
    assert await states(bench) == {}


async def test_rare_columns_are_kept(bench):
    now = bench.store.clock.now()
    identifier, leases = await together(
        bench.add(unique_key="u", continuation="after", hold=1, expires_at=now + 1000), bench.claim()
    )
    assert [(lease.id, lease.expires_at) for lease in leases] == [(identifier, now + 1000)]
    assert await bench.add(unique_key="u") == identifier
    await bench.settle(leases)
    assert await bench.live() == {"after": 1}


async def test_a_new_job_that_the_database_refuses_takes_no_other_along(bench):
    taken = await bench.add()
    bad, good, leases = await together(bench.add(id=taken), bench.add(), bench.claim())
    assert isinstance(bad, Conflict)
    assert [lease.id for lease in leases] == [taken, good]
    assert await bench.tally() == {"accepted": 2}
