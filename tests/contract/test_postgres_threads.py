"""PostgreSQL: the threads beside the writers go on whatever happens, and a store that fails to open leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.contract.bench import Ears, sql
from tests.contract.conftest import make_store
from ulak.errors import Unavailable
from ulak.spine.store import Tx
from ulak.stores.postgres import relay as postgres_relay
from ulak.stores.postgres.tx import PostgresTx

pytestmark = pytest.mark.postgres


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """The next one to be opened lies above what `select` can take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("this process may not have so many descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    with contextlib.ExitStack() as opened:
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 1100:
            opened.callback(os.close, descriptor)
        os.close(descriptor)
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _met(*benches: Any) -> None:
    async with asyncio.timeout(20):
        while not all(one.store._notifier.gauges and not one.store._notifier.alone for one in benches):
            await asyncio.sleep(0.001)


@pytest.mark.usefixtures("many_descriptors")
async def test_words_are_heard_in_a_process_with_thousands_of_descriptors(opened, database):
    async with opened(database) as first, opened(database) as second:
        await _met(first, second)
        await first.add(prio=1)
        await second.ears.until(lambda: ("mail", 1) in second.ears.ready)


def _failing_once(act: Callable[..., Any]) -> tuple[Callable[..., Any], list[str]]:
    failures: list[str] = []

    def fail_once(*args: Any) -> Any:
        if not failures:
            failures.append("once")
            raise RuntimeError("on purpose")
        return act(*args)

    return fail_once, failures


async def test_the_notifier_goes_on_after_an_error_that_nobody_foresaw(opened, database):
    async with opened(database) as first, opened(database) as second:
        await _met(first, second)
        notifier = second.store._notifier
        notifier._heard, failures = _failing_once(notifier._heard)
        async with asyncio.timeout(20):
            while ("mail", 1) not in second.ears.ready:  # a word that falls into the gap is lost, and that is allowed
                await first.add(prio=1)
        assert failures


async def test_the_relay_goes_on_after_an_error_that_nobody_foresaw(opened, database):
    async with opened(database) as bench:
        relay = bench.store._relay
        relay._moved, failures = _failing_once(relay._moved)
        await bench.add()
        async with asyncio.timeout(20):
            while not failures:
                await asyncio.sleep(0.001)
        await bench.add()
        assert [one.seq for one in await bench.events(2)] == [1, 2]


async def test_a_store_that_fails_to_open_leaves_no_descriptor(clock, database):
    nowhere = database.replace("/test_", "/nowhere_")
    assert nowhere != database

    async def fail_to_open() -> None:
        with pytest.raises(Unavailable):
            await make_store(nowhere, clock, {}).open(Ears())

    await fail_to_open()  # the first one also starts the loop's threads
    before = _descriptors()
    for _ in range(3):
        await fail_to_open()
    assert _descriptors() == before


async def test_a_store_that_is_left_behind_at_its_close_leaves_no_descriptor(clock, database):
    async def leave_behind() -> None:
        others = set(threading.enumerate())
        store = make_store(database, clock, {})
        await store.open(Ears())
        assert not await store.close(0)
        for thread in set(threading.enumerate()) - others:
            if thread.name.startswith("ulak-"):
                await asyncio.to_thread(thread.join, 20)

    await leave_behind()  # the first one also starts the loop's threads
    before = _descriptors()
    for _ in range(3):
        await leave_behind()
    assert _descriptors() == before


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_old_tokens_are_folded_though_there_are_events_in_every_pass(opened, database, monkeypatch):
    monkeypatch.setattr(postgres_relay, "TOKENS_PER_FOLD", 10)
    async with opened(database) as bench:
        relay = bench.store._relay
        old = bench.clock.now() - postgres_relay.TOKEN_KEPT_MILLIS - 1
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(_OLD_TOKENS, (old, 25))
            relay._full_at = 0.0  # the next one is full
            async with asyncio.timeout(20):
                while connection.execute("SELECT 1 FROM event_outbox WHERE at = %s LIMIT 1", (old,)).fetchone():
                    await bench.add()
            assert connection.execute("SELECT number FROM tally WHERE kind = 'old'").fetchall() == [(25,)]


_OLD_TOKENS = """
INSERT INTO event_outbox (token, owner, node, at, count, body, words, kinds, numbers, credit_pools, credits)
SELECT n, 1, 0, %s, 0, '', '{accepted}', '{old}', '{1}', '{}', '{}' FROM generate_series(1, %s) AS n
"""


async def test_a_readers_statements_stay_prepared(opened, database):
    """The driver forgets them after a rollback, and would ask the server to forget all before the next read."""

    def prepared(tx: Tx) -> set[tuple[int, str]]:
        assert isinstance(tx, PostgresTx)
        tx.row(sql.read_job, id=1)
        asked = "SELECT pg_backend_pid(), name FROM pg_prepared_statements WHERE statement LIKE '%FROM job WHERE id%'"
        return set(tx._cursor.execute(asked, prepare=False).fetchall())

    async with opened(database) as bench:
        seen = set().union(*[await bench.store.read(prepared) for _ in range(6)])
    assert len(seen) == len({backend for backend, _ in seen}) > 0
