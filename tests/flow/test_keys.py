"""Keys: strict order with one slot, a bulkhead with more, and one slow destination that holds up nobody else."""

from __future__ import annotations

import asyncio

from ulak import Backoff, NewJob, Snooze, Transient
from ulak.testing import advance, drain


async def test_jobs_of_one_key_run_one_at_a_time_and_in_order_while_others_run_beside(make):
    ulak = make()
    order, at_once, most = [], {}, {}

    @ulak.handles("mail.send", concurrency=50)
    async def send(job):
        at_once[job.key] = at_once.get(job.key, 0) + 1
        most[job.key] = max(most.get(job.key, 0), at_once[job.key])
        for _ in range(job.payload % 3):
            await asyncio.sleep(0)
        order.append((job.key, job.payload))
        at_once[job.key] -= 1

    async with ulak:
        jobs = [NewJob("mail.send", number, key=f"key-{number % 5}") for number in range(100)]
        await ulak.enqueue_many(jobs)
        await drain(ulak)
    assert set(most.values()) == {1}
    for key in most:
        mine = [number for found, number in order if found == key]
        assert mine == sorted(mine)
        assert len(mine) == 20


async def test_a_retry_keeps_its_place_so_the_order_of_its_key_holds(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Transient("busy")]
    async with ulak:
        for number in range(3):
            await ulak.enqueue("mail.send", number, key="ada")
        await drain(ulak)
        assert recorder.payloads == [0]
        await advance(ulak, 2)
    assert recorder.payloads == [0, 0, 1, 2]


async def test_a_dead_letter_frees_its_key(make, recorder):
    from ulak import Permanent

    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Permanent("no")]
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", number, key="ada") for number in range(3)])
        await drain(ulak)
    assert recorder.payloads == [0, 1, 2]


async def test_a_keyed_job_that_is_not_yet_due_joins_the_line_when_it_becomes_due(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", "later", key="ada", delay_seconds=60)
        await ulak.enqueue("mail.send", "now", key="ada")
        await drain(ulak)
        assert recorder.payloads == ["now"]
        await advance(ulak, 60)
    assert recorder.payloads == ["now", "later"]


async def test_no_more_than_the_slots_of_a_destination_run_at_once(make):
    ulak = make()
    running, most = 0, 0

    @ulak.handles("hook.send", concurrency=100)
    async def send(_):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", key="shop", slots=3) for _ in range(50)])
        await drain(ulak)
        tally = await ulak.jobs.tally()
    assert most == 3
    assert tally["hook.send"]["done"] == 50


async def test_a_slow_destination_with_many_waiting_does_not_hold_up_the_others(make):
    ulak = make()
    release, quick = asyncio.Event(), []

    @ulak.handles("hook.send", concurrency=20)
    async def send(job):
        if job.key == "slow":
            await release.wait()
        else:
            quick.append(job.payload)

    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", number, key="slow", slots=8) for number in range(300)])
        await ulak.enqueue_many(
            [NewJob("hook.send", number, key=f"quick-{number % 9}", slots=8) for number in range(100)]
        )
        while len(quick) < 100:  # all of them, while not one of the slow ones has ended
            await asyncio.sleep(0)
        assert (await ulak.jobs.counts())["hook.send"]["behind"] == 292
        release.set()
        await drain(ulak)
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 400


async def test_failing_jobs_of_a_bulkhead_let_the_good_ones_pass(make, recorder):
    """With order it is the other way round: there a retry holds up its key."""
    ulak = make()

    @ulak.handles("hook.send", backoff=Backoff(first_seconds=3600))
    async def send(job):
        if job.payload == "bad":
            raise Transient("busy")

    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", "bad", key="shop", slots=8) for _ in range(8)])
        await ulak.enqueue_many([NewJob("hook.send", "good", key="shop", slots=8) for _ in range(200)])
        await drain(ulak)
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 200
        assert (await ulak.jobs.counts())["hook.send"]["deferred"] == 8


async def test_a_snooze_of_the_handler_gives_the_slot_on_and_one_that_holds_does_not(make, recorder):
    ulak = make()
    recorder.on(ulak, "hook.send")
    recorder.answers = [Snooze(3600), Snooze(3600, holds=True), Snooze(3600, holds=True)]
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", number, key="shop", slots=2) for number in range(5)])
        await drain(ulak)
        assert sorted(recorder.payloads) == [0, 1, 2]
        counts = (await ulak.jobs.counts())["hook.send"]
        assert (counts["deferred"], counts["behind"]) == (3, 2)
