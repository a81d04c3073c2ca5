"""Who goes first: priorities with shares for the low ones, kinds in turn, rates, and concurrency per kind."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.stores import nothing_is_claimed
from ulak import NewJob, Priority
from ulak.testing import advance, drain


async def test_urgent_work_goes_first(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=1)
    async with ulak:
        async with nothing_is_claimed(ulak):
            for priority in (Priority.LOW, Priority.NORMAL, Priority.URGENT, Priority.HIGH):
                await ulak.enqueue("mail.send", priority.name, priority=priority)
        await drain(ulak)
    assert recorder.payloads == ["URGENT", "HIGH", "NORMAL", "LOW"]


@pytest.mark.parametrize("concurrency", [1, 4, 100])
@pytest.mark.parametrize(
    "levels",
    [
        (Priority.URGENT, Priority.LOW),
        (Priority.HIGH, Priority.NORMAL, Priority.LOW),
        (Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.LOW),
    ],
    ids=len,
)
async def test_every_lower_level_still_moves_while_higher_ones_never_end(make, concurrency, levels):
    """Strict priority would starve them. An eighth of what is claimed rotates over the lower levels."""
    ulak = make()
    waiting = max(24, 2 * concurrency)
    left = dict.fromkeys(levels[1:], waiting)
    top, enough = 0, max(64, 8 * concurrency)

    @ulak.handles("mail.send", concurrency=concurrency)
    async def send(job):
        nonlocal top
        if job.priority is levels[0]:
            top += 1
            if top <= enough:
                await ulak.enqueue("mail.send", priority=levels[0])
        elif top <= enough:
            left[job.priority] -= 1

    async with ulak:
        lower = [NewJob("mail.send", priority=level) for level in levels[1:] for _ in range(waiting)]
        await ulak.enqueue_many([NewJob("mail.send", priority=levels[0])] * (2 * concurrency) + lower)
        await drain(ulak)
    assert all(number < waiting for number in left.values()), left
    assert sum(left.values()) > 0  # and the top one was not starved either


async def test_a_busy_kind_does_not_starve_another(make):
    ulak = make(worker={"concurrency": 4})
    flooded, other = 0, asyncio.Event()

    @ulak.handles("a.flood", concurrency=4)
    async def flood(_):
        nonlocal flooded
        flooded += 1
        if not other.is_set():
            await ulak.enqueue("a.flood")

    @ulak.handles("z.rare", concurrency=4)
    async def rare(_):
        other.set()

    async with ulak:
        await ulak.enqueue_many([NewJob("a.flood")] * 50)
        await ulak.enqueue("z.rare")
        await other.wait()
        assert flooded < 2000
        await drain(ulak)


async def test_a_kind_never_runs_more_at_once_than_it_may(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=3)
    recorder.release = asyncio.Event()
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", number) for number in range(10)])
        await recorder.started.wait()
        while recorder.at_once < 3:
            await asyncio.sleep(0)
        counts = (await ulak.jobs.counts())["mail.send"]
        assert (counts["running"], counts["ready"]) == (3, 7)
        recorder.release.set()
        await drain(ulak)
    assert recorder.most_at_once == 3
    assert len(recorder.jobs) == 10


async def test_a_kind_with_a_rate_starts_no_faster(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", rate_per_second=5)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", number) for number in range(20)])
        await drain(ulak)
        assert len(recorder.jobs) == 5  # one second's worth at once
        for second in range(1, 4):
            await advance(ulak, 1)
            assert len(recorder.jobs) == 5 + 5 * second
    assert recorder.payloads == list(range(20))


async def test_a_job_of_an_idle_kind_starts_at_once_however_low_its_rate(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", rate_per_second=1 / 60, concurrency=100)
    recorder.on(ulak, "sms.send")
    async with ulak:
        while ulak.loops.worker.claimer._piggyback is None:  # it has looked, and found nothing
            await asyncio.sleep(0)
        await ulak.enqueue_many([NewJob("mail.send", number) for number in range(2)])
        await drain(ulak)
        assert recorder.payloads == [0]
        await advance(ulak, 59)
        assert recorder.payloads == [0]
        await advance(ulak, 1)
    assert recorder.payloads == [0, 1]


async def test_a_kind_that_waits_for_its_rate_goes_on_while_another_kind_is_never_idle(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", rate_per_second=1)
    done = asyncio.Event()

    @ulak.handles("a.flood")
    async def flood(_):
        ulak.clock.advance(0.01)
        if not done.is_set():
            await ulak.enqueue("a.flood")

    async with ulak:
        began = ulak.clock.now()
        await ulak.enqueue_many([NewJob("a.flood")] * 20)
        await ulak.enqueue_many([NewJob("mail.send")] * 3)
        await recorder.until(3)
        done.set()
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 3
    assert recorder.jobs[2].started_millis - began >= 2000  # the third token


async def test_while_results_can_not_be_kept_a_rate_that_allows_more_lets_the_worker_sleep(make, recorder, monkeypatch):
    ulak = make()
    recorder.on(ulak, "mail.send", rate_per_second=1)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", number) for number in range(2)])
        await drain(ulak)
        claimer, looks = ulak.loops.worker.claimer, []
        assert claimer.waits_for_rate("mail.send")
        async with nothing_is_claimed(ulak):
            monkeypatch.setattr(claimer, "_look_around", lambda: looks.append(1))
            ulak.clock.advance(2)
            for _ in range(200):
                await asyncio.sleep(0)
            monkeypatch.undo()
        await drain(ulak)
    assert len(looks) < 5
    assert recorder.payloads == [0, 1]


async def test_many_expired_jobs_do_not_hold_up_those_behind_them(make, recorder):
    """Each claim finds only expired ones for a while: the worker must not take that for an empty queue."""
    from ulak.clock import to_datetime

    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=10)
    async with ulak:
        async with nothing_is_claimed(ulak):
            soon = to_datetime(ulak.clock.now() + 1)
            await ulak.enqueue_many([NewJob("mail.send", "old", expires_at=soon) for _ in range(500)])
            await ulak.enqueue("mail.send", "fresh")
            ulak.clock.advance(0.002)
        # From here on the worker has to go on by itself.
        while not recorder.jobs:
            await asyncio.sleep(0)
        await drain(ulak)
        tally = (await ulak.jobs.tally())["mail.send"]
    assert (tally["expired"], tally["done"]) == (500, 1)


async def test_work_that_becomes_ready_in_the_commit_of_an_empty_claim_is_not_forgotten(make, recorder):
    """Settle, claim and enqueue share a commit: the claim sees an empty level that the same commit then fills."""
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await drain(ulak)
        began = ulak.clock.now()
        for number in range(200):
            ulak.loops.worker.claimer.note_ready({("mail.send", 2)})  # a claim that will find nothing
            await asyncio.sleep(0)
            await ulak.enqueue("mail.send", number)
            await recorder.until(number + 1)  # without any help from the clock
        assert ulak.clock.now() == began
    assert recorder.payloads == list(range(200))
