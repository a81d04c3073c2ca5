"""Followers: durable, named cursors in the event log, which the pruner waits for, up to a bound."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench
from ulak.errors import Conflict, Invalid, NotFound
from ulak.spine.event import first_seq
from ulak.spine.units import followers
from ulak.spine.units.followers import find_backlogs, list_followers
from ulak.spine.units.prune import PRUNE, Ages

DAY = 86_400_000


async def emitted(bench: Bench, number: int) -> None:
    """So many events, one block each, that can be read."""
    for n in range(number):
        await bench.store.write(lambda tx, n=n: tx.emit("test.told", n, "test"))
    await bench.events(number)


async def test_a_follower_begins_at_the_newest_event_and_is_found_where_it_stands(bench: Bench):
    await emitted(bench, 3)
    assert await bench.store.read(followers.position, "mirror") is None
    assert await bench.store.write(followers.register, "mirror") == 3
    assert await bench.store.write(followers.register, "mirror", 1) == 3
    assert await bench.store.write(followers.register, "other", 0) == 0
    assert await bench.store.write(followers.advance, "other", 2) == 2
    assert await bench.store.read(followers.position, "other") == 2
    found = await bench.store.read(list_followers)
    assert [(one.name, one.position, one.lag) for one in found] == [("other", 2, 1), ("mirror", 3, 0)]


async def test_a_follower_never_goes_back(bench: Bench):
    await emitted(bench, 3)
    await bench.store.write(followers.register, "mirror", 0)
    await bench.store.write(followers.advance, "mirror", 3)
    assert await bench.store.write(followers.advance, "mirror", 1) == 3
    assert await bench.store.read(followers.position, "mirror") == 3


async def test_a_cursor_moves_with_the_unit_that_uses_the_events_or_not_at_all(bench: Bench):
    await emitted(bench, 2)
    await bench.store.write(followers.register, "mirror", 0)

    def fail(tx):
        followers.advance(tx, "mirror", 2)
        raise ValueError("after all not")

    with pytest.raises(ValueError, match="after all not"):
        await bench.store.write(fail)
    assert await bench.store.read(followers.position, "mirror") == 0


async def test_an_unknown_follower_a_bad_name_and_a_position_beyond_the_log_are_refused(bench: Bench):
    with pytest.raises(NotFound, match="register"):
        await bench.store.write(followers.advance, "nobody", 1)
    with pytest.raises(Invalid, match="named"):
        await bench.store.write(followers.register, "")
    with pytest.raises(Conflict, match="newest"):
        await bench.store.write(followers.register, "mirror", 7)


async def test_the_pruner_stops_at_the_slowest_follower(bench: Bench):
    await emitted(bench, 5)
    await bench.store.write(followers.register, "slow", 2)
    await bench.store.write(followers.register, "fast")
    bench.clock.advance(2 * 86_400)
    await bench.store.write(lambda tx: tx.emit("test.young", 0, "test"))
    await bench.events(6)
    ages = Ages(DAY, DAY, DAY, followed=7 * DAY)
    assert (await bench.store.submit(PRUNE, ages))["event_block"] == 2
    assert await bench.store.read(first_seq) == 3
    (backlog,) = await bench.store.read(find_backlogs, bench.clock.now() - DAY)
    assert (backlog.follower, backlog.lag, backlog.lost) == ("slow", 4, 0)
    assert await bench.store.write(followers.forget, "slow")
    assert not await bench.store.write(followers.forget, "slow")
    assert (await bench.store.submit(PRUNE, ages))["event_block"] == 3


async def test_a_follower_that_is_too_slow_loses_events_and_is_named(bench: Bench):
    await emitted(bench, 5)
    await bench.store.write(followers.register, "slow", 2)
    bench.clock.advance(10 * 86_400)
    await bench.store.write(lambda tx: tx.emit("test.young", 0, "test"))
    await bench.events(6)
    assert (await bench.store.submit(PRUNE, Ages(DAY, DAY, DAY, followed=7 * DAY)))["event_block"] == 5
    (backlog,) = await bench.store.read(find_backlogs, bench.clock.now() - DAY)
    assert (backlog.follower, backlog.lost) == ("slow", 3)
