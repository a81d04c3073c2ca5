"""Cancelling: while a job waits, while it runs, and in the moments between."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.flow.stores import claim, nothing_is_claimed
from ulak import IllegalTransition, NewJob, NotFound
from ulak.spine.outcome import Release, Settlement
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.settle import SETTLE
from ulak.testing import drain


async def test_a_waiting_job_is_cancelled_at_once_and_never_runs(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        job = await ulak.enqueue("mail.send", delay_seconds=60)
        assert await ulak.jobs.cancel(job) == "cancelled"
        ulak.clock.advance(60)
        await ulak.loops.alarm.promote_due()
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "cancelled"
        with pytest.raises(IllegalTransition, match="cancelled already"):
            await ulak.jobs.cancel(job)
        with pytest.raises(NotFound):
            await ulak.jobs.cancel(12345)
    assert recorder.jobs == []


async def test_a_cancel_beside_a_claim_comes_first(make, recorder):
    """After it, it would find a job that runs, but nobody yet who runs it: the handler would go on for seconds."""
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak, nothing_is_claimed(ulak):
        job = await ulak.enqueue("mail.send")
        claiming, cancelling = claim(ulak, "mail.send"), ulak.store.submit(CANCEL, job)
        assert (await cancelling, (await claiming).leases) == ("cancelled", [])


async def test_a_running_job_is_interrupted_and_ends_as_cancelled(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.release = asyncio.Event()
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await recorder.started.wait()
        assert await ulak.jobs.cancel(job) == "cancelling"
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.detail) == ("cancelled", {"reason": "cancelled while running"})


async def test_a_handler_that_finishes_in_spite_of_the_cancellation_is_done(make):
    ulak = make()
    started = asyncio.Event()

    @ulak.handles("mail.send")
    async def send(_):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"sent": True}

    async with ulak:
        job = await ulak.enqueue("mail.send")
        await started.wait()
        await ulak.jobs.cancel(job)
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "done"


async def test_a_runner_whose_job_was_cancelled_runs_the_next_one_unharmed(make):
    """A mark left on the reused task would make a failure of the next job look like the end of the runner."""
    ulak = make()
    started = asyncio.Event()

    @ulak.handles("mail.stubborn")
    async def stubborn(_):
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    @ulak.handles("mail.next", max_attempts=1)
    async def waits_for_something_that_is_cancelled(_):
        other = asyncio.ensure_future(asyncio.Event().wait())
        other.cancel()
        await other

    async with ulak:
        stuck = await ulak.enqueue("mail.stubborn")
        await started.wait()
        await ulak.jobs.cancel(stuck)
        await drain(ulak)
        after = await ulak.enqueue_many([NewJob("mail.next")] * 5)
        await drain(ulak)
        assert {(await ulak.jobs.get(job)).status for job in after} == {"dead"}
        assert not ulak.loops.worker.running


async def test_a_job_cancelled_between_its_claim_and_its_start_does_not_run(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        worker = ulak.loops.worker
        async with nothing_is_claimed(ulak):
            job = await ulak.enqueue("mail.send")
            claimed = await claim(ulak, "mail.send")
            worker._begin(claimed.leases)
            worker.cancel([job])
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "cancelled"
    assert recorder.jobs == []


async def test_a_job_that_is_handed_back_while_somebody_cancels_it_ends_cancelled(make):
    ulak = make(work=False)
    async with ulak:
        store = ulak.store
        job = await ulak.enqueue("mail.send")
        claimed = await claim(ulak, "mail.send")
        (lease,) = claimed.leases
        assert await ulak.jobs.cancel(job) == "cancelling"
        await store.submit(SETTLE, [Settlement(lease.id, lease.epoch, lease.kind, None, 1, Release())])
        assert (await ulak.jobs.get(job)).status == "cancelled"


async def test_the_continuation_of_a_cancelled_job_is_told_waiting_or_running(make, recorder):
    ulak = make()
    told = []

    @ulak.handles("order.sent")
    async def sent(job):
        told.append((job.payload["job"], job.payload["outcome"], job.payload["payload"]))

    recorder.on(ulak, "mail.send")
    recorder.release = asyncio.Event()
    async with ulak:
        waiting = await ulak.enqueue("mail.send", 1, delay_seconds=60, continuation="order.sent")
        running = await ulak.enqueue("mail.send", 2, continuation="order.sent")
        await recorder.started.wait()
        await ulak.jobs.cancel(waiting)
        await ulak.jobs.cancel(running)
        await drain(ulak)
    assert sorted(told) == [(waiting, "cancelled", 1), (running, "cancelled", 2)]


async def test_cancelling_the_head_of_a_key_lets_the_next_one_go(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        head = await ulak.enqueue("mail.send", 1, key="ada", delay_seconds=1)
        await ulak.enqueue("mail.send", 2, key="ada", delay_seconds=1)
        async with nothing_is_claimed(ulak):
            ulak.clock.advance(1)
            await ulak.loops.alarm.promote_due()
            assert (await ulak.jobs.get(head)).status == "ready"
            await ulak.jobs.cancel(head)
        await drain(ulak)
    assert recorder.payloads == [2]
