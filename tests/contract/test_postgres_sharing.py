"""PostgreSQL: several stores on one database share the work, the capacity and the log."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest

from tests.contract.bench import Bench, ids_of, sql
from tests.postgres_server import server
from ulak.spine.outcome import Done
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.enqueue import Full
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.spine.units.slots import PROMOTE_STRANDED
from ulak.stores.migrate import postgres_versions

pytestmark = pytest.mark.postgres


END_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def two(opened, database):
    """Two benches on one database, and the database's address for a third look."""
    async with opened(database, bounds={"few": 16}) as first, opened(database, bounds={"few": 16}) as second:
        notifiers = [first.store._notifier, second.store._notifier]
        while not all(one.gauges and not one.alone for one in notifiers):  # a word before they have met may be lost
            await asyncio.sleep(0.001)
        yield first, second


def query(address: str, statement: str) -> list[tuple]:
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def test_two_stores_share_the_work_without_claiming_twice(two):
    first, second = two
    added = set(await first.offer(*[first.row() for _ in range(1000)]))
    taken: list[int] = []

    async def work(bench: Bench) -> None:
        while leases := await bench.claim(free=20):
            taken.extend(ids_of(leases))
            await bench.settle(leases)

    await asyncio.gather(work(first), work(second))
    rest = [*ids_of(await first.claim(free=1000)), *ids_of(await second.claim(free=1000))]
    assert len(taken + rest) == len(set(taken + rest))
    assert set(taken + rest) == added


async def test_a_table_of_the_same_name_in_another_schema_is_left_alone(opened, database):
    query(database, "CREATE SCHEMA shop")
    query(database, "CREATE TABLE shop.job (id bigint)")
    async with opened(database) as first, opened(database) as second:
        while not (first.store._notifier.gauges and second.store._notifier.gauges):
            await asyncio.sleep(0.001)
        assert first.store._notifier.gauges["owners"] >= 1


async def test_each_store_has_an_owner_and_a_node_of_its_own(two, database):
    first, second = two
    assert first.store.owner != second.store.owner
    assert query(database, "SELECT node FROM owner ORDER BY node") == [(0,), (1,)]


async def test_a_node_that_was_left_is_taken_again(opened, database):
    async with opened(database), opened(database):
        pass
    async with opened(database):
        assert query(database, "SELECT node FROM owner") == [(0,)]


async def test_a_commit_here_wakes_the_worker_there(two):
    first, second = two
    await first.add(prio=1)
    await second.ears.until(lambda: ("mail", 1) in second.ears.ready)
    assert len(await second.claim()) == 1


async def test_words_are_heard_again_after_the_connections_broke(two, database):
    first, second = two
    query(
        database,
        END_OTHERS,
    )
    while ("mail", 1) not in second.ears.ready:  # a word that falls into the gap is lost, and that is allowed
        await first.add(prio=1)
    assert await second.claim() != []


async def test_a_deadline_set_here_is_known_there(two):
    first, second = two
    due_at = first.clock.now() + 5000
    await first.add(due_at=due_at)
    await second.ears.until(lambda: second.ears.due_at == due_at)


async def test_a_job_that_runs_there_is_cancelled_from_here(two):
    first, second = two
    identifier = await first.add()
    await second.claim()
    assert await first.store.submit(CANCEL, identifier) == "cancelling"
    await second.ears.until(lambda: second.ears.cancelled == [identifier])


async def test_many_levels_are_told_in_more_than_one_word(two):
    first, second = two
    await first.offer(*[first.row(f"kind.{'x' * 90}.{index}", prio=index % 4) for index in range(100)])
    await second.ears.until(lambda: len(second.ears.ready) == 100)


async def test_the_log_is_gapless_whoever_writes(two):
    first, second = two
    await asyncio.gather(*(bench.add() for _ in range(100) for bench in two))
    told = await first.events(200)
    assert [one.seq for one in told] == list(range(1, 201))
    assert [one.seq for one in await second.events(200)] == list(range(1, 201))


async def test_another_store_takes_over_when_the_relay_leaves(opened, database):
    async with contextlib.AsyncExitStack() as stays:
        async with opened(database) as leading:
            await leading.add()
            await leading.events(1)
            following = await stays.enter_async_context(opened(database))
        await following.add()
        assert [one.seq for one in await following.events(2)] == [1, 2]


async def test_a_key_never_gets_stuck_between_a_settle_and_an_enqueue(two):
    first, second = two
    await first.add(key="k")
    for _ in range(60):
        (lease,) = await first.claim()
        await asyncio.gather(first.settle([lease]), second.add(key="k"))
        await first.ears.until(lambda: True)
    (lease,) = await second.claim()
    await second.settle([lease])
    assert await first.live() == {}


async def test_keys_locked_in_any_order_by_many_writers_end_well(two):
    first, second = two
    keys = [f"k{index}" for index in range(8)]
    for turn in range(10):
        mixed = keys[turn % 8 :] + keys[: turn % 8]
        await asyncio.gather(
            *(bench.offer(*[bench.row(key=key, unique_key=f"{key}.{turn}.{n}") for key in mixed[::step]])
              for n, (bench, step) in enumerate([(first, 1), (second, -1), (first, -1), (second, 1)]))
        )  # fmt: skip
    done = 0
    while leases := [*await first.claim(), *await second.claim()]:
        await asyncio.gather(first.settle(leases[::2]), second.settle(leases[1::2]))
        done += len(leases)
    assert done == 320


async def test_the_bound_holds_for_all_together(two):
    verdicts = await asyncio.gather(*(bench.offer(bench.row("few")) for _ in range(20) for bench in two))
    assert sum(not isinstance(one, Full) for one in verdicts) <= 16
    assert await two[0].live() == {"few": sum(not isinstance(one, Full) for one in verdicts)}


async def test_credit_that_lies_idle_is_given_to_who_needs_it(two):
    first, second = two
    await first.offer(*[first.row("few") for _ in range(12)])
    await first.settle(await first.claim("few"))
    first.clock.advance(2)
    await first.store.maintain()
    await second.store.maintain()
    assert not isinstance(await second.offer(*[second.row("few") for _ in range(16)]), Full)
    assert isinstance(await first.offer(first.row("few")), Full)


async def test_capacity_made_there_is_announced_here(two):
    first, second = two
    await first.offer(*[first.row("few") for _ in range(16)])
    assert isinstance(await second.offer(second.row("few")), Full)
    await first.settle(await first.claim("few"))
    await second.ears.until(lambda: "few" in second.ears.free)
    assert not isinstance(await second.offer(second.row("few")), Full)


async def test_credit_of_the_dead_is_found_again(opened, database):
    async with opened(database, bounds={"few": 800}) as living:
        async with opened(database, bounds={"few": 800}) as dying:
            await dying.offer(dying.row("few"))
            await dying.events(1)
            query(database, f"DELETE FROM owner WHERE id = {dying.store.owner}")
            dying.store._credits.forget()
        living.clock.advance(10)
        await living.store.maintain()
        assert not isinstance(await living.offer(*[living.row("few") for _ in range(799)]), Full)
        assert isinstance(await living.offer(living.row("few")), Full)


async def test_a_claim_that_waits_is_given_back_with_the_name_that_it_was_made_in(two):
    """Otherwise it would lease jobs to an owner that others have declared dead."""
    bench, _ = two
    piggyback, owner = bench.piggyback(), bench.store.owner
    await bench.store._go_on_under_a_new_name()
    assert bench.store.owner != owner
    assert piggyback.done()
    assert piggyback.result() is None


async def test_capacity_lent_under_a_name_that_is_gone_does_not_come_back_to_the_new_one(two, database):
    bench, _ = two
    with psycopg.connect(database) as connection:
        await bench.store.enqueue_in(connection, [bench.row("few")])
        await bench.store._go_on_under_a_new_name()
        connection.rollback()
    for _ in range(3):
        bench.clock.advance(10)
        await bench.store.maintain()
    assert bench.store.capacity.available.get("few", 0) == 0


async def test_a_store_that_was_taken_for_dead_goes_on_under_a_new_name(two, database):
    first, second = two
    await first.offer(*[first.row("few") for _ in range(2)])
    leases = await first.claim("few")
    before = first.store.owner
    second.clock.advance(60)
    assert (await second.store.submit(RESCUE, Lost(before, 5))).total() == 2
    assert (await second.store.submit(RESCUE, Lost(before, 5))).total() == 0
    await first.store.maintain()
    assert first.store.owner != before
    assert await first.settle(leases) == set()
    assert len(await second.claim_suspects("few")) == 2
    await first.add("few")


async def test_work_that_others_claimed_is_rescued_after_its_owner_is_gone(opened, database):
    async with opened(database) as living:
        identifier = await living.add(key="k")
        await living.add(key="k")
        async with opened(database) as dying:
            (lease,) = await dying.claim()
            owner = dying.store.owner
        living.clock.advance(16)
        assert (await living.store.submit(RESCUE, Lost(owner, 5))).total() == 1
        assert query(database, f"SELECT dead_at FROM owner WHERE id = {owner}") == [(None,)]
        assert (await living.store.submit(RESCUE, Lost(owner, 5))).total() == 0
        assert query(database, f"SELECT dead_at FROM owner WHERE id = {owner}") == [(living.clock.now(),)]
        assert await living.settle([lease]) == set()
        assert ids_of(await living.claim_suspects()) == [identifier]


async def test_two_instances_that_start_together_fill_an_empty_database_once(clock):
    from tests.contract.bench import Ears
    from tests.contract.conftest import make_store

    with server().bare_database() as address:
        stores = [make_store(address, clock, {}) for _ in range(2)]
        await asyncio.gather(*(store.open(Ears()) for store in stores))
        with psycopg.connect(address) as connection:
            assert postgres_versions(connection) == {"spine": 1}
        for store in stores:
            await store.close()


async def test_a_key_left_behind_by_a_stranger_is_found(two, database):
    first, _ = two
    identifier = await first.add(key="k")
    query(database, f"UPDATE job SET state = 3, slot = NULL WHERE id = {identifier}")
    assert await first.claim() == []
    await first.store.submit(PROMOTE_STRANDED, "")
    assert ids_of(await first.claim()) == [identifier]


async def test_gauges_are_told_without_asking_the_database(two):
    first, _ = two
    await first.settle([], Done())
    gauges = first.store.gauges()
    assert gauges["handover_depth"] == 0
    assert gauges["commits_total"] >= 1
    assert sql is not None
