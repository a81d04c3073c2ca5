"""Ends that do more: `then` runs once per commit for all jobs that end with it, and only for those that really do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.bench import Bench
from ulak.errors import Conflict
from ulak.spine.job import Lease, NewJob
from ulak.spine.outcome import Dead, Done, Outcome, Settlement
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed
from ulak.spine.units.records import read_record
from ulak.spine.units.settle import SETTLE


def settlement(lease: Lease, outcome: Outcome) -> Settlement:
    return Settlement(lease.id, lease.epoch, lease.kind, lease.key, lease.attempt, outcome)


async def leases(bench: Bench, number: int) -> list[Lease]:
    await bench.offer(*[bench.row() for _ in range(number)])
    return await bench.claim()


class Follow:
    """Counts its calls, and enqueues a job for each item."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []

    def __call__(self, tx: Tx, items: list[Any]) -> None:
        self.calls.append(items)
        enqueue_owed(tx, [NewJob("next", item) for item in items])


async def test_a_function_runs_once_for_all_jobs_that_end_with_it(bench: Bench):
    found, other, follow = await leases(bench, 6), Follow(), Follow()
    ends: list[Outcome] = [
        Done(then=(follow, 0)), Done("kept", then=(follow, 1)), Dead("no", then=(follow, 2)),
        Done(then=(other, 3)), Dead("no"), Done(),
    ]  # fmt: skip
    kept = await bench.store.submit(SETTLE, [settlement(*pair) for pair in zip(found, ends, strict=True)])
    assert len(kept) == 6
    assert [sorted(items) for items in follow.calls] == [[0, 1, 2]]
    assert other.calls == [[3]]
    assert (await bench.live())["next"] == 4


async def test_ends_of_many_workers_in_one_commit_share_one_call(bench: Bench):
    found, follow = await leases(bench, 20), Follow()
    done = [
        bench.store.submit(SETTLE, [settlement(lease, Done(then=(follow, place)))]) for place, lease in enumerate(found)
    ]
    await asyncio.gather(*done)
    assert sorted(item for items in follow.calls for item in items) == list(range(20))
    assert len(follow.calls) == 1


async def test_an_end_that_comes_too_late_does_nothing_more(bench: Bench):
    (lease,), follow = await leases(bench, 1), Follow()
    stale = Settlement(lease.id, lease.epoch + 1, lease.kind, lease.key, 1, Done(then=(follow, "stale")))
    assert await bench.store.submit(SETTLE, [stale]) == set()
    twice = [settlement(lease, Done(then=(follow, "once"))), settlement(lease, Done(then=(follow, "twice")))]
    assert await bench.store.submit(SETTLE, twice) == {(lease.id, lease.epoch)}
    assert len(follow.calls) == 1
    assert len(follow.calls[0]) == 1
    assert await bench.store.submit(SETTLE, twice) == set()
    assert len(follow.calls) == 1


async def test_a_function_that_raises_fails_its_own_batch_only(bench: Bench):
    found, follow = await leases(bench, 2), Follow()

    def refuse(_tx: Tx, _items: list[Any]) -> None:
        raise Conflict("not now")

    bad = bench.store.submit(SETTLE, [settlement(found[0], Done(then=(refuse, 1)))])
    good = bench.store.submit(SETTLE, [settlement(found[1], Done(then=(follow, 2)))])
    failed, kept = await asyncio.gather(bad, good, return_exceptions=True)
    assert isinstance(failed, Conflict)
    assert kept == {(found[1].id, found[1].epoch)}
    assert follow.calls[-1] == [2]
    assert (await bench.live()) == {"mail": 1, "next": 1}


@pytest.mark.parametrize("code", ["SMTP_TIMEOUT", None])
async def test_a_dead_letter_keeps_the_code_of_its_failure(bench: Bench, code: str | None):
    (lease,) = await leases(bench, 1)
    await bench.settle([lease], Dead("the server did not answer", "transient", code))
    record = await bench.store.read(read_record, lease.id)
    assert record is not None
    assert (record.status, record.detail, record.code) == ("dead", "the server did not answer", code)
