"""Bounded admission on every store: never more than the bound, and capacity comes back with what leaves."""

from __future__ import annotations

import asyncio

from ulak.spine.capacity import live_pool
from ulak.spine.outcome import Dead
from ulak.spine.units.enqueue import Full


async def test_the_bound_is_reached_exactly_and_not_passed(opened, address):
    async with opened(address, bounds={"mail": 10}) as bench:
        verdicts = await asyncio.gather(*(bench.offer(bench.row()) for _ in range(25)))
        assert sum(not isinstance(one, Full) for one in verdicts) == 10
        assert await bench.live() == {"mail": 10}
        assert not isinstance(await bench.offer(bench.row("sms")), Full)


async def test_a_large_bound_is_reached_exactly_too(opened, address):
    async with opened(address, bounds={"mail": 2500}) as bench:
        for _ in range(2):
            assert not isinstance(await bench.offer(*[bench.row() for _ in range(1000)]), Full)
        verdicts = await asyncio.gather(*(bench.offer(bench.row()) for _ in range(600)))
        assert sum(not isinstance(one, Full) for one in verdicts) == 500


async def test_all_or_nothing_at_the_bound(opened, address):
    async with opened(address, bounds={"mail": 5}) as bench:
        verdict = await bench.offer(bench.row("sms"), *[bench.row() for _ in range(6)])
        assert isinstance(verdict, Full)
        assert verdict.kind == "mail"
        assert await bench.live() == {}
        assert not isinstance(await bench.offer(*[bench.row() for _ in range(5)]), Full)


async def test_what_leaves_makes_capacity_and_says_so(opened, address):
    async with opened(address, bounds={"mail": 3}) as bench:
        await bench.offer(*[bench.row() for _ in range(3)])
        leases = await bench.claim()
        bench.ears.free.clear()
        await bench.settle(leases[:2])
        await bench.settle(leases[2:], Dead("no"))
        assert set(bench.ears.free) == {"mail", live_pool("mail")}
        assert not isinstance(await bench.offer(*[bench.row() for _ in range(3)]), Full)
        assert isinstance(await bench.offer(bench.row()), Full)


async def test_what_is_owed_goes_past_the_bound(opened, address):
    async with opened(address, bounds={"mail": 5, "after": 1}) as bench:
        await bench.offer(*[bench.row(continuation="after") for _ in range(3)])
        await bench.settle(await bench.claim())
        assert await bench.live() == {"after": 3}
        assert isinstance(await bench.offer(bench.row("after")), Full)


async def test_capacity_is_counted_again_after_a_restart(opened, address):
    if address == "memory:":
        return
    async with opened(address, bounds={"mail": 5}) as bench:
        await bench.offer(*[bench.row() for _ in range(4)])
    async with opened(address, bounds={"mail": 5}) as bench:
        assert not isinstance(await bench.offer(bench.row()), Full)
        assert isinstance(await bench.offer(bench.row()), Full)


async def test_a_duplicate_takes_no_capacity(opened, address):
    async with opened(address, bounds={"mail": 1}) as bench:
        first = await bench.add(unique_key="u")
        assert await bench.offer(bench.row(unique_key="u")) == [first]


async def test_a_rolled_back_unit_takes_no_capacity(opened, address):
    async with opened(address, bounds={"mail": 1}) as bench:

        def unit(tx):
            assert tx.admit("mail", 1) is None
            raise ValueError("no")

        await asyncio.gather(bench.store.write(unit), return_exceptions=True)
        assert not isinstance(await bench.offer(bench.row()), Full)


async def test_a_large_batch_does_not_wait_for_what_two_idle_holders_keep(opened, address):
    if not address.startswith("postgresql"):
        return
    async with opened(address, bounds={"mail": 100}) as first, opened(address, bounds={"mail": 100}) as second:
        for bench in (first, second):  # each has a block of credit left
            await bench.add()
            await bench.settle(await bench.claim())
        assert isinstance(await first.offer(*[first.row() for _ in range(95)]), Full)
        assert not isinstance(await second.offer(*[second.row() for _ in range(95)]), Full)
