"""PostgreSQL: a node number has one maker of ids at a time, also when a process is taken for dead and is not."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest

from tests.contract.bench import Bench
from tests.contract.lossy_proxy import lossy
from ulak.clock import SystemClock
from ulak.errors import Unavailable
from ulak.ids import NODE_REST_MILLIS
from ulak.spine.loops.rescuer import BEAT, Beat, Rescuer
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.enqueue import Full
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.stores.postgres.upkeep import say_goodbye

pytestmark = pytest.mark.postgres

REST_SECONDS = NODE_REST_MILLIS / 1000
LEASE_SECONDS = 15


@pytest.fixture
async def two(opened, database):
    async with opened(database, bounds={"few": 800}) as first, opened(database, bounds={"few": 800}) as second:
        yield first, second


@pytest.fixture
async def real(opened, database):
    """A bench whose clock nobody moves: its ids expire."""
    async with opened(database, clock=SystemClock()) as bench:
        yield bench


def query(address: str, statement: str) -> list[tuple]:
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def declare_dead(rescuer: Bench, owner: int) -> None:
    rescuer.clock.advance(LEASE_SECONDS + 1)
    assert (await rescuer.store.submit(RESCUE, Lost(owner, 5))).total() == 0


def beat(bench: Bench):
    return bench.store.submit(BEAT, Beat(bench.store.owner, LEASE_SECONDS * 1000, multi_process=True))


async def test_the_node_of_an_owner_that_was_declared_dead_rests_for_a_minute(opened, two, database):
    first, second = two
    await declare_dead(second, first.store.owner)
    first.clock.advance(REST_SECONDS - 1)
    async with opened(database) as newcomer:
        assert newcomer.store._owner.node == 2
    first.clock.advance(1)
    async with opened(database) as newcomer:
        assert newcomer.store._owner.node == 0
        assert len(query(database, "SELECT id FROM owner")) == 2


async def test_a_clean_goodbye_frees_the_node_at_once(opened, database):
    async with opened(database) as first:
        node = first.store._owner.node
    async with opened(database) as second:
        assert second.store._owner.node == node


async def test_a_heartbeat_does_not_revive_the_dead(two, database):
    first, second = two
    await declare_dead(second, first.store.owner)
    assert (await beat(first)).lease_at is None
    assert query(database, f"SELECT dead_at IS NULL FROM owner WHERE id = {first.store.owner}") == [(False,)]
    assert first.store.owner not in (await beat(second)).lost


async def test_an_owner_that_has_renewed_its_lease_meanwhile_is_not_declared_dead(two, database):
    first, second = two
    first.clock.advance(LEASE_SECONDS + 1)
    await beat(first)
    await second.store.submit(RESCUE, Lost(first.store.owner, 5))
    assert query(database, "SELECT count(*) FROM owner WHERE dead_at IS NULL") == [(2,)]


async def test_a_late_heartbeat_does_not_shorten_a_lease(real, database):
    (before,) = query(database, "SELECT lease_at FROM owner")
    await real.store.submit(BEAT, Beat(real.store.owner, 10, multi_process=True))
    assert query(database, "SELECT lease_at FROM owner") == [before]


async def test_credit_of_an_owner_that_was_declared_dead_returns(two):
    dying, living = two
    await dying.offer(dying.row("few"))
    await dying.events(1)
    await declare_dead(living, dying.store.owner)
    await living.store.maintain()
    assert not isinstance(await living.offer(*[living.row("few") for _ in range(799)]), Full)
    assert isinstance(await living.offer(living.row("few")), Full)


async def test_who_gives_its_node_back_takes_nothing_more(opened, database, monkeypatch):
    async with opened(database) as bench:
        under_way, go_on = threading.Event(), threading.Event()

        def held_up(tx, **told):
            under_way.set()
            go_on.wait(10)
            say_goodbye(tx, **told)

        monkeypatch.setattr("ulak.stores.postgres.store.say_goodbye", held_up)
        row = bench.row()
        closing = asyncio.ensure_future(bench.store.close())
        await asyncio.to_thread(under_way.wait, 10)
        offering = asyncio.ensure_future(bench.offer(row))
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(Unavailable, match="closed"):
            await offering
        assert await closing
    assert query(database, "SELECT id FROM job") == []
    assert query(database, "SELECT id FROM owner") == []


async def test_a_heartbeat_lets_the_ids_be_good_for_longer(real):
    good_until = real.store.ids.good_until
    await Rescuer(real.store, Telemetry(), lease_seconds=100, poison_deaths=5).beat()
    assert real.store.ids.good_until > good_until


async def test_a_process_that_was_frozen_and_not_missed_goes_on_under_its_name(real):
    owner = real.store.owner
    real.store.ids.good_until = 0
    with pytest.raises(Unavailable, match="no ids for now"):
        await real.add()
    await real.claim()
    await real.add()
    assert real.store.owner == owner


async def test_a_process_that_was_frozen_and_declared_dead_makes_no_ids_until_it_has_a_new_name(real, database):
    row, before = real.row(), (real.store.owner, real.store._owner.node)
    freeze_until_dead(real, database)
    with pytest.raises(Unavailable, match="no ids for now"):
        await real.offer(row)  # the row has an id; the commit needs one more
    assert await real.live() == {}
    await real.store.maintain()
    assert real.store.owner != before[0]
    assert real.store._owner.node != before[1]
    await real.offer(row)
    assert [lease.id for lease in await real.claim()] == [row.id]


async def test_a_unit_that_needs_an_id_fails_alone_while_there_are_none(real, database):
    await real.add(continuation="after")
    leases = await real.claim()
    freeze_until_dead(real, database)
    with pytest.raises(Unavailable, match="no ids for now"):
        await real.settle(leases)
    await real.store.maintain()
    assert len(await real.settle(leases)) == 1
    assert await real.live() == {"after": 1}


async def test_a_callers_transaction_is_left_alone_while_there_are_no_ids(real, database):
    await real.add()  # so that there is capacity at hand
    row = real.row()
    freeze_until_dead(real, database)
    with psycopg.connect(database) as connection:
        with pytest.raises(Unavailable, match="no ids for now"):
            await real.store.enqueue_in(connection, [row])
        assert connection.execute("SELECT count(*) FROM job").fetchall() == [(1,)]


async def test_a_reconnect_that_finds_the_owner_dead_leads_to_a_new_name_at_the_next_upkeep(opened, database):
    with lossy(database) as wire:
        async with opened(wire.address, clock=SystemClock()) as bench:
            await bench.store.maintain()  # the regular look is over
            before = bench.store.owner
            declare_dead_there(bench, database)
            wire.lose("the commit")
            await bench.add()
            await bench.store.maintain()
            assert bench.store.owner != before
            await bench.add()


def freeze_until_dead(bench: Bench, database: str) -> None:
    """As others see it: the lease ran out, and it was declared dead. As it sees itself: long without a heartbeat."""
    declare_dead_there(bench, database)
    bench.store.ids.good_until = 0


def declare_dead_there(bench: Bench, database: str) -> None:
    now = bench.store.clock.now()
    query(database, f"UPDATE owner SET lease_at = 0, dead_at = {now} WHERE id = {bench.store.owner}")
