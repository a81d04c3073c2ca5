"""Turns: who becomes ready or joins a line goes to its end, so that nobody overtakes for ever."""

from __future__ import annotations

from tests.contract.bench import Bench
from ulak.spine.outcome import Dead, Release, Retry
from ulak.spine.units import dead_letters


def ids_of(leases):
    return [lease.id for lease in leases]


async def test_a_retry_that_is_due_goes_behind_those_that_waited_meanwhile(bench: Bench):
    failing = await bench.add()
    waiting = [await bench.add() for _ in range(3)]
    (lease,) = await bench.claim(free=1)
    assert lease.id == failing
    await bench.settle([lease], Retry(), resume_at=bench.clock.now())
    await bench.promote_due()
    assert ids_of(await bench.claim()) == [*waiting, failing]


async def test_keys_take_turns_and_a_newcomer_does_not_wait_for_an_older_backlog(bench: Bench):
    await bench.offer(*[bench.row(key=f"busy{number}") for number in range(3) for _ in range(20)])
    newcomer = await bench.add(key="new")
    started = 0
    while newcomer not in ids_of(leases := await bench.claim(free=1)):
        started += len(leases)
        await bench.settle(leases)
    assert started == 3  # one of each busy key, not sixty


async def test_due_jobs_of_a_key_join_the_end_of_its_line(bench: Bench):
    later = await bench.add(key="k", due_at=bench.clock.now() + 100)
    first, second = await bench.add(key="k"), await bench.add(key="k")
    bench.clock.advance(1)
    await bench.promote_due()
    seen = []
    while leases := await bench.claim():
        seen += ids_of(leases)
        await bench.settle(leases)
    assert seen == [first, second, later]


async def test_what_is_redriven_goes_to_the_end_and_what_is_released_keeps_its_turn(bench: Bench):
    dead, released = await bench.add(), await bench.add()
    await bench.settle(await bench.claim(free=1), Dead("no"))
    waiting = await bench.add()
    await bench.store.write(dead_letters.redrive, [dead])
    await bench.settle(await bench.claim(free=1), Release())
    assert ids_of(await bench.claim()) == [released, waiting, dead]
