"""PostgreSQL: connections that break. Lost replies are looked up, broken batches run again, nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter

import psycopg
import pytest

from tests.contract.bench import Bench, sql
from tests.contract.lossy_proxy import lossy
from tests.postgres_server import server
from ulak.errors import Conflict, Invalid, Unavailable
from ulak.spine import probe
from ulak.spine.units.enqueue import enqueue_rows
from ulak.stores.postgres.session import PostgresSession
from ulak.stores.postgres.tx import PostgresTx

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def _no_probes_left():
    yield
    probe.clear()


@pytest.mark.parametrize("lost", ["the commit", "its reply"])
async def test_an_enqueue_whose_commit_met_a_broken_wire_is_there_exactly_once(opened, database, lost):
    with lossy(database) as wire:
        async with opened(wire.address) as bench:
            wire.lose(lost)
            identifier = await bench.add()
            assert wire.losses == 1
            assert await bench.live() == {"mail": 1}
            assert await bench.tally() == {"accepted": 1}
            assert [lease.id for lease in await bench.claim()] == [identifier]


@pytest.mark.parametrize("lost", ["the commit", "its reply"])
async def test_an_enqueue_that_is_one_statement_and_met_a_broken_wire_is_there_exactly_once(opened, database, lost):
    with lossy(database) as wire:
        async with opened(wire.address) as bench:
            await bench.add()  # takes credit along, for the next one too
            wire.lose(lost)
            await bench.add()
            assert (wire.losses, wire.whole) == (1, 1 if lost == "its reply" else 2)
            assert await bench.live() == {"mail": 2}
            assert await bench.tally() == {"accepted": 2}
            assert len(await bench.claim()) == 2


async def test_a_refused_enqueue_fails_alone_though_it_went_with_others_as_one_statement(opened, database):
    with lossy(database) as wire:
        async with opened(wire.address) as bench:
            first = await bench.add()
            row, twin = bench.row(), bench.row(id=first)
            verdicts = await asyncio.gather(bench.offer(row), bench.offer(twin), return_exceptions=True)
            assert wire.whole == 1
            assert verdicts[0] == [row.id]
            assert isinstance(verdicts[1], Conflict)
            assert await bench.live() == {"mail": 2}
            assert await bench.tally() == {"accepted": 2}


async def test_what_a_unit_asks_after_an_enqueue_sees_the_new_job(opened, database):
    async with opened(database) as bench:
        await bench.add()
        row = bench.row()

        def unit(tx):
            enqueue_rows(tx, [row])
            return tx.row(sql.read_job, id=row.id)

        found = await bench.store.write(unit)
        assert found is not None
        assert found[0] == row.id


@pytest.mark.parametrize("lost", ["the commit", "its reply"])
async def test_a_settle_whose_commit_met_a_broken_wire_is_counted_once(opened, database, lost):
    with lossy(database) as wire:
        async with opened(wire.address, bounds={"mail": 1}) as bench:
            await bench.add(continuation="after")
            leases = await bench.claim()
            wire.lose(lost)
            assert await bench.settle(leases) == {(leases[0].id, 1)}
            assert await bench.live() == {"after": 1}
            assert await bench.tally() == {"accepted": 1, "done": 1}
            await bench.add()


@pytest.mark.parametrize("lost", ["the commit", "its reply"])
async def test_a_unit_without_events_runs_once(opened, database, lost):
    with lossy(database) as wire:
        async with opened(wire.address) as bench:
            await bench.store.write(lambda tx: tx.execute(sql.open_budget, kind="mail", tokens=5.0, now=tx.now))
            wire.lose(lost)
            await bench.store.write(lambda tx: tx.execute(sql.refund_budget, kind="mail", tokens=1))
            with psycopg.connect(database) as connection:
                assert connection.execute("SELECT tokens FROM budget").fetchall() == [(6.0,)]


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
async def test_a_commit_about_which_the_driver_is_confused_is_looked_up(opened, database, monkeypatch, committed):
    """A server that stops says so before it hangs up; in between the driver may complain of itself, not of the wire."""
    send = PostgresSession._send_commit

    def confused(session: PostgresSession, tx: PostgresTx) -> None:
        monkeypatch.undo()
        if committed:
            send(session, tx)
        else:
            session._token = tx.ids.take(tx.now)
        raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    async with opened(database) as bench:
        monkeypatch.setattr(PostgresSession, "_send_commit", confused)
        identifier = await bench.add()
        assert await bench.tally() == {"accepted": 1}
        assert [lease.id for lease in await bench.claim()] == [identifier]


async def test_a_backend_that_is_ended_before_the_commit_costs_nothing(opened, database):
    async with opened(database) as bench:
        await bench.add()
        probe.listen("writer.before_commit", _once(lambda: _end_backends(database)))
        await bench.add()
        assert await bench.tally() == {"accepted": 2}
        assert len(await bench.claim()) == 2


def _once(act):
    def listener() -> None:
        probe.clear()
        act()

    return listener


def _end_backends(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_a_value_that_the_database_refuses_fails_alone(opened, database):
    async with opened(database) as bench:
        good = [bench.offer(bench.row(payload={"text": "with \x00 inside"})) for _ in range(5)]
        bad = bench.offer(bench.row(key="a\x00b"))
        verdicts = await asyncio.gather(*good, bad, return_exceptions=True)
        assert isinstance(verdicts[-1], Invalid)
        assert await bench.live() == {"mail": 5}


async def test_a_unique_key_that_a_stranger_holds_open_delays_only_its_own_caller(opened, database):
    async with opened(database) as bench:
        row = bench.row(unique_key="u")
        with psycopg.connect(database) as stranger:
            stranger.execute(
                "INSERT INTO job (id, kind, slots, prio, due_at, state, accepted_at, unique_key, hold, payload, turn)"
                " VALUES (1, 'mail', 1, 2, 0, 0, 0, 'u', 0, 'null', 1)"
            )
            verdicts = await asyncio.gather(bench.offer(row), bench.offer(bench.row()), return_exceptions=True)
        assert isinstance(verdicts[0], Unavailable)
        assert isinstance(verdicts[1], list)
        assert await bench.add(unique_key="u") == 1


@pytest.mark.slow
async def test_what_was_accepted_survives_restarts_of_the_server_under_load(opened, database):
    accepted: list[int] = []
    settled: Counter[int] = Counter()
    stop = asyncio.Event()

    async def produce(bench: Bench) -> None:
        while not stop.is_set():
            accepted.append(await bench.add())

    async def work(bench: Bench) -> None:
        while not stop.is_set():
            leases = await bench.claim(free=50)
            if leases:
                settled.update(identifier for identifier, _ in await bench.settle(leases))
            await asyncio.sleep(0)

    async with opened(database) as bench:
        tasks = [asyncio.create_task(one) for one in [work(bench), *(produce(bench) for _ in range(10))]]
        for mode in ("immediate", "fast"):
            await _settled_more(bench, settled, 200)
            await asyncio.to_thread(server().restart, mode)
        await _settled_more(bench, settled, 200)
        stop.set()
        await asyncio.gather(*tasks)
        assert max(settled.values()) == 1
        assert await _kept(database) == set(accepted)
        assert (await bench.tally())["accepted"] == len(accepted) == len(set(accepted))
        told = Counter(one.job for one in await bench.events(len(accepted)) if one.name == "accepted")
        assert set(told.values()) == {1}


async def _settled_more(bench: Bench, settled: Counter[int], number: int) -> None:
    goal = len(settled) + number
    await bench.ears.until(lambda: len(settled) >= goal)


async def _kept(address: str) -> set[int]:
    def read() -> set[int]:
        with psycopg.connect(address) as connection:
            return {row[0] for row in connection.execute("SELECT id FROM job UNION ALL SELECT id FROM past")}

    return await asyncio.to_thread(read)
