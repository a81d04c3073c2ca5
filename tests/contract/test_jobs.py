"""What every store does with a job: accept, claim, settle, fence, retry, expire, continue."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.contract.bench import LEVELS, Bench, ids_of
from ulak import codec
from ulak.errors import Invalid
from ulak.spine.outcome import Cancel, Dead, Done, Release, Retry, Snooze
from ulak.spine.store import Tx
from ulak.spine.units.claim import ClaimVerbs, Demand, Want
from ulak.spine.units.enqueue import enqueue_rows
from ulak.spine.units.rate import spend
from ulak.spine.units.records import list_records, read_record


async def test_a_job_is_claimed_once_and_leaves_when_it_is_done(bench: Bench):
    identifier = await bench.add(payload={"to": "ada"})
    (lease,) = await bench.claim()
    assert (lease.id, lease.epoch, lease.attempt, codec.decode(lease.payload)) == (identifier, 1, 1, {"to": "ada"})
    assert await bench.claim() == []
    assert await bench.settle([lease]) == {(identifier, 1)}
    assert await bench.live() == {}
    past = await bench.record(identifier, "past")
    assert past is not None
    assert past[:3] == (identifier, "mail", "done")


async def test_jobs_of_a_level_come_in_the_order_of_their_ids(bench: Bench):
    added = [await bench.add() for _ in range(5)]
    assert ids_of(await bench.claim(free=3)) == added[:3]
    assert ids_of(await bench.claim()) == added[3:]


async def test_a_claim_takes_no_more_than_its_capacity_and_tells_which_levels_are_dry(bench: Bench):
    for _ in range(3):
        await bench.add(prio=1)
    claimed = await bench.demand(free=2, levels=(1,))
    assert len(claimed.leases) == 2
    assert claimed.dry == []
    claimed = await bench.demand(free=2, levels=(1,))
    assert len(claimed.leases) == 1
    assert claimed.dry == [("mail", 1)]


@pytest.mark.parametrize(("free", "lane"), [(3, 100), (100, 3)])
async def test_a_claim_of_several_kinds_keeps_within_its_capacity_and_that_of_their_lane(bench: Bench, free, lane):
    for kind in ("mail", "sms"):
        await bench.offer(*[bench.row(kind) for _ in range(2)])
    wants = tuple(Want(kind, 100, LEVELS) for kind in ("mail", "sms"))
    demand = Demand(bench.store.owner, wants, free=free, lanes={"async": lane})
    claimed = await bench.store.submit(ClaimVerbs().verb, demand)
    assert [lease.kind for lease in claimed.leases] == ["mail", "mail", "sms"]


async def test_a_claim_of_many_levels_asks_first_which_of_them_have_work(bench: Bench):
    """A worker looks everywhere once a second, and has dozens of kinds."""
    kinds = [f"kind{number}" for number in range(30)]
    urgent, usual = await bench.add("kind7", prio=0), await bench.add("kind20")
    asked: list[tuple[str, int]] = []

    def look(tx: Tx) -> tuple[list[int], int]:
        claim = tx.claim
        tx.claim = lambda *wanted: asked.append(wanted[1:3]) or claim(*wanted)  # type: ignore[method-assign,func-returns-value]
        fresh = enqueue_rows(tx, [bench.row("kind3", prio=1)])
        wants = tuple(Want(kind, 10, LEVELS) for kind in kinds)
        claimed = ClaimVerbs().claim(tx, Demand(bench.store.owner, wants, free=100, lanes={"async": 100}))
        assert fresh == ids_of(claimed.leases)[:1]
        return ids_of(claimed.leases), len(claimed.dry)

    taken, dry = await bench.store.write(look)
    assert taken[1:] == [urgent, usual]
    assert asked == [("kind3", 1), ("kind7", 0), ("kind20", 2)]
    assert dry == len(kinds) * len(LEVELS)


async def test_a_listing_that_is_not_whole_leaves_out_what_may_be_large(bench: Bench):
    identifiers = [await bench.add(payload={"to": "ada"}) for _ in range(3)]
    done, dead = await bench.claim(free=2)
    await bench.settle([done], Done({"sent": True}))
    await bench.settle([dead], Dead("no mailbox", "permanent"))
    listed = await bench.store.read(list_records, None, None, 1 << 62, 10, whole=False)
    assert [(one.id, one.status) for one in listed] == list(zip(identifiers, ["done", "dead", "ready"], strict=True))[
        ::-1
    ]
    assert [(one.payload, one.detail) for one in listed] == [(None, None)] * 3
    whole = await bench.store.read(list_records, None, None, 1 << 62, 10)
    assert [(one.payload, one.detail) for one in whole] == [
        ({"to": "ada"}, detail) for detail in (None, "no mailbox", {"sent": True})
    ]


async def test_a_claim_does_not_take_another_kind(bench: Bench):
    await bench.add("mail")
    assert await bench.claim("sms") == []


async def test_a_stale_settle_is_refused(bench: Bench):
    identifier = await bench.add()
    (first,) = await bench.claim()
    await bench.settle([first], Release())
    (second,) = await bench.claim()
    assert second.epoch == first.epoch + 1
    assert await bench.settle([first]) == set()
    assert await bench.settle([first], Retry()) == set()
    assert await bench.settle([second]) == {(identifier, second.epoch)}


async def test_a_settle_after_a_release_is_refused_though_nobody_has_claimed_since(bench: Bench):
    await bench.add()
    (lease,) = await bench.claim()
    await bench.settle([lease], Release())
    assert await bench.settle([lease]) == set()
    assert await bench.live() == {"mail": 1}


async def test_of_a_batch_only_what_is_ours_is_settled(bench: Bench):
    for _ in range(3):
        await bench.add()
    leases = await bench.claim()
    stale = msgspec.structs.replace(leases[1], epoch=7)
    assert await bench.settle([leases[0], stale, leases[2]]) == {(leases[0].id, 1), (leases[2].id, 1)}
    assert await bench.live() == {"mail": 1}


async def test_outcomes_of_one_batch_each_go_their_way(bench: Bench):
    for _ in range(6):
        await bench.add()
    leases = await bench.claim()
    now = bench.clock.now()
    outcomes = [Done({"sent": 1}), Cancel("no"), Dead("broken"), Retry(), Snooze(5.0), Release()]
    for lease, outcome in zip(leases, outcomes, strict=True):
        await bench.settle([lease], outcome, resume_at=now + 1000)
    assert await bench.live() == {"mail": 3}
    done, cancelled = [await bench.record(one.id, "past") for one in leases[:2]]
    assert done is not None
    assert cancelled is not None
    assert (done[2], codec.decode(done[14])) == ("done", {"sent": 1})
    assert (cancelled[2], codec.decode(cancelled[14])) == ("cancelled", {"reason": "no"})
    assert await bench.record(leases[2].id, "dead") is not None
    tally = await bench.tally()
    assert [tally[word] for word in ("accepted", "done", "cancelled", "dead", "retried", "snoozed")] == [
        6,
        1,
        1,
        1,
        1,
        1,
    ]


async def test_a_retry_comes_back_when_it_is_due_with_one_attempt_more(bench: Bench):
    await bench.add()
    leases = await bench.claim()
    await bench.settle(leases, Retry(), resume_at=bench.clock.now() + 5000)
    assert await bench.claim() == []
    assert await bench.promote_due() == bench.clock.now() + 5000
    bench.clock.advance(5)
    assert await bench.promote_due() is None
    (again,) = await bench.claim()
    assert (again.attempt, again.epoch) == (2, 2)


async def test_a_job_that_waits_to_be_tried_again_has_not_started(bench: Bench):
    identifier = await bench.add()
    await bench.settle(await bench.claim(), Retry(), resume_at=bench.clock.now() + 1000)
    record = await bench.store.read(read_record, identifier)
    assert record is not None
    assert record.started_at is None


async def test_the_timeline_of_a_job_that_is_tried_without_end_stops_growing(bench: Bench):
    identifier = await bench.add()
    for _ in range(50):
        await bench.settle(await bench.claim(), Retry(reason="r" * 500), resume_at=bench.clock.now())
        await bench.promote_due()
    row = await bench.record(identifier, "job")
    assert row is not None
    assert 16_000 <= len(row[13]) < 17_000


async def test_the_log_has_the_beginning_of_a_long_reason_only(bench: Bench):
    await bench.add()
    await bench.settle(await bench.claim(), Retry(reason="r" * 1000), resume_at=bench.clock.now())
    assert (await bench.events(3))[-1].data[2] == "r" * 200


async def test_a_snooze_does_not_count_as_an_attempt(bench: Bench):
    await bench.add()
    await bench.settle(await bench.claim(), Snooze(1.0), resume_at=bench.clock.now() + 1000)
    bench.clock.advance(1)
    await bench.promote_due()
    (again,) = await bench.claim()
    assert (again.attempt, again.epoch) == (1, 2)


async def test_a_deferred_job_is_not_claimed_before_its_time(bench: Bench):
    identifier = await bench.add(due_at=bench.clock.now() + 200)
    assert bench.ears.due_at == bench.clock.now() + 200
    assert await bench.claim() == []
    bench.clock.advance(0.2)
    await bench.promote_due()
    assert ids_of(await bench.claim()) == [identifier]


async def test_due_jobs_become_ready_a_slice_at_a_time(bench: Bench):
    rows = [bench.row(due_at=bench.clock.now() + 10) for _ in range(250)]
    await bench.offer(*rows)
    bench.clock.advance(1)
    assert await bench.promote_due() is not None
    assert await bench.promote_due() is None
    assert len(await bench.claim(free=300)) == 250


async def test_jobs_with_and_without_unusual_columns_are_kept_as_they_are(bench: Bench):
    rows = [
        bench.row(payload=1),
        bench.row(payload=2, prio=1),
        bench.row(payload=3, key="k", slots=4),
        bench.row(payload=4, continuation="after"),
        bench.row(payload=5, unique_key="u"),
        bench.row(payload=6, expires_at=bench.clock.now() + 60_000),
        bench.row("other", payload=7),
    ] + [bench.row(payload=number) for number in range(100, 300)]
    assert await bench.offer(*rows) == [row.id for row in rows]
    leases = {one.id: one for one in [*await bench.claim(free=500), *await bench.claim("other")]}
    for row in rows:
        lease = leases[row.id]
        assert (lease.kind, lease.key, lease.prio, lease.due_at, lease.accepted_at, lease.expires_at) == (
            row.kind, row.key, row.prio, row.due_at, row.accepted_at, row.expires_at
        )  # fmt: skip
        assert codec.decode(lease.payload) == codec.decode(row.payload)
    await bench.settle(list(leases.values()))
    assert await bench.live() == {"after": 1}


async def test_a_result_that_comes_again_after_the_end_changes_nothing(bench: Bench):
    await bench.add()
    await bench.add()
    first, second = await bench.claim()
    await bench.settle([first])
    assert await bench.settle([first, second]) == {(second.id, second.epoch)}
    assert (await bench.tally())["done"] == 2


async def test_an_expired_job_is_dropped_and_counted_instead_of_run(bench: Bench):
    late = await bench.add(expires_at=bench.clock.now() + 1000)
    bench.clock.advance(2)
    fresh = await bench.add(expires_at=bench.clock.now() + 1000)
    assert ids_of(await bench.claim()) == [fresh]
    past = await bench.record(late, "past")
    assert past is not None
    assert past[2] == "expired"
    assert (await bench.tally())["expired"] == 1


async def test_a_continuation_is_enqueued_with_the_outcome(bench: Bench):
    identifier = await bench.add(payload={"n": 1}, continuation="after")
    await bench.settle(await bench.claim(), Done({"ok": True}))
    (lease,) = await bench.claim("after")
    message = codec.decode(lease.payload)
    assert message["job"] == identifier
    assert (message["outcome"], message["detail"], message["payload"]) == ("done", {"ok": True}, {"n": 1})


async def test_a_continuation_is_as_urgent_as_its_job(bench: Bench):
    await bench.add(continuation="after", prio=0)
    await bench.settle(await bench.claim())
    assert [lease.prio for lease in await bench.claim("after")] == [0]


async def test_a_continuation_of_a_dead_job_tells_the_cause(bench: Bench):
    await bench.add(continuation="after")
    await bench.settle(await bench.claim(), Dead("no such address", "permanent"))
    (lease,) = await bench.claim("after")
    assert codec.decode(lease.payload)["detail"] == {"cause": "no such address", "error_class": "permanent"}


async def test_a_unit_of_done_runs_in_the_settling_transaction(bench: Bench):
    await bench.add()
    follow_up = bench.row("follow")

    def unit(tx):
        from ulak.spine.units.enqueue import enqueue_rows

        enqueue_rows(tx, [follow_up])

    await bench.settle(await bench.claim(), Done(unit=unit))
    assert await bench.live() == {"follow": 1}


async def test_a_unit_that_raises_keeps_its_job_and_spares_the_others(bench: Bench):
    await bench.add()
    await bench.add()
    first, second = await bench.claim()

    def unit(tx):
        raise Invalid("no")

    failing = bench.settle([first], Done(unit=unit))
    fine = bench.settle([second])
    verdicts = await asyncio.gather(failing, fine, return_exceptions=True)
    assert isinstance(verdicts[0], Invalid)
    assert verdicts[1] == {(second.id, second.epoch)}
    assert await bench.live() == {"mail": 1}


async def test_a_write_that_raises_leaves_nothing(bench: Bench):
    def unit(tx):
        from ulak.spine.units.enqueue import enqueue_rows

        enqueue_rows(tx, [bench.row()])
        raise Invalid("changed my mind")

    with pytest.raises(Invalid):
        await bench.store.write(unit)
    assert await bench.live() == {}
    assert await bench.tally() == {}


async def test_low_priority_still_moves_under_a_flood_of_high(bench: Bench):
    await bench.offer(*[bench.row(prio=1) for _ in range(400)], *[bench.row(prio=3) for _ in range(20)])
    taken = [lease for _ in range(8) for lease in await bench.claim(free=8)]
    low = [lease for lease in taken if lease.prio == 3]
    assert len(taken) == 64
    assert 1 <= len(low) <= 8


async def test_a_rate_bounds_what_is_claimed_and_says_when_to_come_back(bench: Bench):
    await bench.offer(*[bench.row() for _ in range(30)])
    claimed = await bench.demand(free=100, rate=10.0)
    assert len(claimed.leases) == 10
    assert claimed.rate_wait_seconds["mail"] == pytest.approx(0.1, abs=0.01)
    assert await bench.claim(rate=10.0) == []
    bench.clock.advance(0.5)
    assert len(await bench.claim(rate=10.0)) == 5


async def test_tokens_that_found_no_job_are_given_back(bench: Bench):
    await bench.add()
    assert len(await bench.claim(rate=5.0)) == 1
    await bench.offer(*[bench.row() for _ in range(10)])
    assert len(await bench.claim(rate=5.0)) == 4


async def test_a_kind_that_has_tokens_left_over_need_not_wait_for_its_rate(bench: Bench):
    assert (await bench.demand(free=100, rate=1 / 60)).rate_wait_seconds == {}
    await bench.add()
    claimed = await bench.demand(free=100, rate=1 / 60)
    assert len(claimed.leases) == 1
    assert claimed.rate_wait_seconds["mail"] == pytest.approx(60)
    assert (await bench.demand(free=100, rate=1 / 60)).rate_wait_seconds["mail"] == pytest.approx(60)


async def test_reads_can_not_write(bench: Bench):
    from tests.contract.bench import sql

    with pytest.raises(Exception, match=r"(?i)read-?only|readonly|can't"):
        await bench.store.read(lambda tx: tx.execute(sql.bury_owner, id=1, now=1))


async def test_a_rate_holds_for_a_transaction_that_waited_and_has_an_older_time(bench: Bench):
    def spend_at(tx: Tx, seconds_ago: float) -> int:
        tx.now -= round(seconds_ago * 1000)
        return spend(tx, "mail", 10.0, 100)[0]

    spent = [await bench.store.write(spend_at, ago) for ago in (0.0, 0.5, 0.0, 0.5, 0.0)]
    assert spent == [10, 0, 0, 0, 0]
