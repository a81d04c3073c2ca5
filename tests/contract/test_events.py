"""The event log on every store: gapless, in an order that a reader can follow, and complete."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.bench import Bench
from ulak.errors import Invalid
from ulak.spine.event import read_events


async def test_a_jobs_life_is_told_in_order(bench: Bench):
    identifier = await bench.add()
    await bench.settle(await bench.claim())
    told = await bench.events(3)
    assert [(one.seq, one.name, one.job, one.kind) for one in told] == [
        (1, "accepted", identifier, "mail"),
        (2, "started", identifier, "mail"),
        (3, "done", identifier, "mail"),
    ]


async def test_a_cursor_reads_on_from_where_it_was(bench: Bench):
    await bench.offer(*[bench.row() for _ in range(10)])
    await bench.events(10)
    first = await bench.store.read(read_events, 0, 4)
    rest = await bench.store.read(read_events, first[-1].seq, 100)
    assert [one.seq for one in first + rest] == list(range(1, 11))


async def test_a_reader_beside_many_writers_misses_nothing(bench: Bench):
    jobs, seen = 300, []

    async def follow() -> None:
        while len(seen) < 3 * jobs:
            seen.extend((await bench.events(1)) if not seen else await _more(bench, seen[-1].seq))

    async def work() -> None:
        done = 0
        while done < jobs:
            leases = await bench.claim(free=50)
            done += len(await bench.settle(leases)) if leases else 0
            await asyncio.sleep(0)

    async with asyncio.timeout(30):
        await asyncio.gather(follow(), work(), *(bench.add() for _ in range(jobs)))
    assert [one.seq for one in seen] == list(range(1, 3 * jobs + 1))
    lives: dict[int, list[str]] = {}
    for one in seen:
        lives.setdefault(one.job, []).append(one.name)
    assert set(map(tuple, lives.values())) == {("accepted", "started", "done")}
    assert len(lives) == jobs


async def _more(bench: Bench, after: int):
    return await bench.store.read(read_events, after, 1000) or await asyncio.sleep(0.001, [])


async def test_what_is_rolled_back_leaves_no_event(bench: Bench):
    def unit(tx):
        tx.emit("made.up", 1, "mail")
        raise Invalid("no")

    with pytest.raises(Invalid):
        await bench.store.write(unit)
    await bench.store.write(lambda tx: tx.emit("true.word", 2, "mail", {"a": [1, None, "x"]}))
    (told,) = await bench.events(1)
    assert (told.seq, told.name, told.data) == (1, "true.word", {"a": [1, None, "x"]})


async def test_the_sequence_goes_on_after_the_store_was_closed(opened, address):
    if address == "memory:":
        pytest.skip("memory: is not kept")
    async with opened(address) as bench:
        await bench.add()
        await bench.events(1)
    async with opened(address) as bench:
        await bench.add()
        assert [one.seq for one in await bench.events(2)] == [1, 2]


async def test_ids_are_never_given_twice_though_the_clock_stands_still(opened, address):
    if address == "memory:":
        pytest.skip("memory: is not kept")
    made = set()
    for _ in range(3):
        async with opened(address) as bench:
            rows = [bench.row() for _ in range(5000)]
            made |= set(await bench.offer(*rows))
    assert len(made) == 15_000
