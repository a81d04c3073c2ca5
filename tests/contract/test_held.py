"""A timer is made ready and claimed shortly before it is due; the store keeps it as if that were at its time."""

from __future__ import annotations

from tests.contract.bench import Bench, ids_of
from ulak.spine.outcome import Cancel, Release, Retry
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.records import read_record
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.spine.units.timers import AHEAD_MILLIS, SLACK_MILLIS, SLICE

SOON = AHEAD_MILLIS - 5


async def record(bench: Bench, identifier: int):
    return await bench.store.read(read_record, identifier)


async def started_millis(bench: Bench, identifier: int) -> int | None:
    found = (await record(bench, identifier)).started_at
    return None if found is None else round(found.timestamp() * 1000)


async def status(bench: Bench, identifier: int) -> str:
    return (await record(bench, identifier)).status


async def test_what_is_due_soon_is_claimed_by_the_look_that_finds_it(bench: Bench):
    now = bench.clock.now()
    soon = [await bench.add(due_at=now + millis) for millis in (1, AHEAD_MILLIS)]
    later = await bench.add(due_at=now + AHEAD_MILLIS + 1)
    piggyback = bench.piggyback()
    assert await bench.look_ahead() == now + AHEAD_MILLIS + 1 - SLACK_MILLIS
    assert ids_of((await piggyback).leases) == soon
    assert await status(bench, later) == "deferred"


async def test_a_job_that_is_due_soon_is_deferred_until_somebody_looks(bench: Bench):
    identifier = await bench.add(due_at=bench.clock.now() + 1)
    assert await status(bench, identifier) == "deferred"
    assert bench.ears.due_at == bench.clock.now() + 1


async def test_without_a_worker_that_has_capacity_nothing_is_ready_before_its_time(bench: Bench):
    identifier = await bench.add(due_at=bench.clock.now() + 1)
    assert await bench.promote_due() == bench.clock.now() + 1
    assert await status(bench, identifier) == "deferred"


async def test_the_start_is_written_down_as_the_due_time(bench: Bench):
    due_at = bench.clock.now() + SOON
    early = await bench.add(due_at=due_at)
    await bench.look_ahead()
    (lease,) = await bench.claim()
    assert (lease.id, lease.due_at) == (early, due_at)
    assert await started_millis(bench, early) == due_at
    bench.clock.advance(1)
    await bench.settle([lease])
    assert await started_millis(bench, early) == due_at


async def test_a_start_after_the_due_time_is_written_down_as_it_is(bench: Bench):
    late = await bench.add(due_at=bench.clock.now() + 100)
    bench.clock.advance(1)
    await bench.look_ahead()
    await bench.claim()
    assert await started_millis(bench, late) == bench.clock.now()


async def test_half_of_the_capacity_is_left_for_what_is_due(bench: Bench):
    now = bench.clock.now()
    soon = [await bench.add(due_at=now + 1 + number) for number in range(5)]
    assert await bench.look_ahead(free=4) == now + 3  # when the first that found no capacity is due
    assert [await status(bench, one) for one in soon] == ["ready"] * 2 + ["deferred"] * 3


async def test_the_only_place_of_a_kind_is_not_taken_ahead_of_time(bench: Bench):
    soon = await bench.add(due_at=bench.clock.now() + SOON)
    await bench.look_ahead(free=1)
    assert await status(bench, soon) == "deferred"


async def test_what_is_due_needs_no_capacity_to_become_ready(bench: Bench):
    due = [await bench.add(due_at=bench.clock.now() + 100) for _ in range(5)]
    bench.clock.advance(0.1)
    await bench.look_ahead(free=1)
    assert ids_of(await bench.claim()) == due


async def test_a_kind_that_the_worker_does_not_run_is_left_alone(bench: Bench):
    soon = await bench.add("other", due_at=bench.clock.now() + SOON)
    await bench.look_ahead("mail")
    assert await status(bench, soon) == "deferred"


async def test_a_kind_with_a_rate_is_not_claimed_before_it_may_start(bench: Bench):
    soon = await bench.add(due_at=bench.clock.now() + SOON)
    await bench.look_ahead(rate=100.0)
    assert await status(bench, soon) == "deferred"


async def test_a_job_with_a_key_joins_its_line_when_it_is_due_and_not_before(bench: Bench):
    soon = await bench.add(key="ada", due_at=bench.clock.now() + 10)
    assert await bench.look_ahead() == bench.clock.now() + 10
    now_due = await bench.add(key="ada")
    assert ids_of(await bench.claim()) == [now_due]
    bench.clock.advance(0.01)
    await bench.look_ahead()
    assert await status(bench, soon) == "behind"


async def test_a_suspect_is_not_taken_ahead_of_its_time(bench: Bench):
    identifier = await bench.add()
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    await bench.settle(await bench.claim_suspects(), Release())
    (lease,) = await bench.claim_suspects()
    await bench.settle([lease], Retry(), resume_at=bench.clock.now() + 10)
    await bench.look_ahead()
    assert await status(bench, identifier) == "deferred"
    bench.clock.advance(0.01)
    await bench.look_ahead()
    assert await status(bench, identifier) == "suspect"


async def test_while_something_has_to_wait_for_its_time_the_others_keep_their_slack(bench: Bench):
    now = bench.clock.now()
    await bench.add(key="ada", due_at=now + AHEAD_MILLIS)
    await bench.add(due_at=now + AHEAD_MILLIS + 1)
    assert await bench.look_ahead() == now + AHEAD_MILLIS - SLACK_MILLIS


async def test_there_is_a_look_at_once_while_a_slice_was_not_enough(bench: Bench):
    now = bench.clock.now()
    rows = [bench.row(due_at=now + 10) for _ in range(SLICE + 50)]
    await bench.offer(*rows)
    assert await bench.look_ahead(free=1000) == now
    assert await bench.look_ahead(free=1000) is None
    assert ids_of(await bench.claim(free=1000)) == [row.id for row in rows]


async def test_a_job_that_expires_by_its_due_time_never_runs(bench: Bench):
    now = bench.clock.now()
    never = await bench.add(due_at=now + SOON, expires_at=now + SOON)
    runs = await bench.add(due_at=now + SOON, expires_at=now + SOON + 1)
    await bench.look_ahead()
    claimed = await bench.demand()
    assert (ids_of(claimed.leases), claimed.expired) == ([runs], 1)
    assert (await status(bench, never), await started_millis(bench, never)) == ("expired", None)


async def test_what_is_handed_back_before_its_time_was_not_charged_and_is_ready(bench: Bench):
    due_at = bench.clock.now() + SOON
    identifier = await bench.add(due_at=due_at)
    await bench.look_ahead()
    await bench.settle(await bench.claim(), Release())
    found = await record(bench, identifier)
    assert (found.status, found.attempt, found.started_at) == ("ready", 0, None)
    (again,) = await bench.claim()
    assert (again.attempt, again.due_at, await started_millis(bench, identifier)) == (1, due_at, due_at)


async def test_what_is_cancelled_before_its_time_has_never_started(bench: Bench):
    identifier = await bench.add(due_at=bench.clock.now() + SOON)
    await bench.look_ahead()
    leases = await bench.claim()
    assert await bench.store.submit(CANCEL, identifier) == "cancelling"
    await bench.settle(leases, Cancel())
    found = await record(bench, identifier)
    assert (found.status, found.started_at) == ("cancelled", None)
    assert [entry.word for entry in found.timeline] == ["accepted", "cancelled"]


async def test_a_death_before_its_time_is_uncertain_like_any_other(bench: Bench):
    """Whether it had started is known to nobody: this is the safe side."""
    due_at = bench.clock.now() + SOON
    identifier = await bench.add(due_at=due_at)
    await bench.look_ahead()
    await bench.claim()
    await bench.store.submit(RESCUE, Lost(bench.store.owner, 5))
    assert (await bench.tally())["uncertain"] == 1
    (again,) = await bench.claim_suspects()
    assert (again.id, again.attempt, again.due_at) == (identifier, 2, due_at)
    assert await started_millis(bench, identifier) == due_at
