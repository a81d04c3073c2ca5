"""Work whose process died: uncertain, run apart, held, or found to be poison. Here the dead are pretended."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import HANG_SECONDS
from tests.flow.stores import claim, events_with, nothing_is_claimed
from ulak import NewJob, Unavailable
from ulak.spine.loops.loops import MAX_SLEEP_SECONDS
from ulak.spine.outcome import Done, Settlement
from ulak.spine.units.claim import CLAIM_SUSPECTS, SuspectDemand
from ulak.spine.units.settle import SETTLE
from ulak.testing import advance, drain

DEAD_OWNER = 4711


async def die_with(ulak, *jobs):
    """Enqueue jobs, let a process claim them, and let it die."""
    async with nothing_is_claimed(ulak):
        ids = await ulak.enqueue_many(jobs)
        leases = (await claim(ulak, jobs[0].kind, len(jobs), owner=DEAD_OWNER)).leases
        assert {lease.id for lease in leases} == set(ids)
        await ulak.loops._rescuer.beat()
    return ids


async def die_again(ulak, kind, *, alone):
    """Claim a suspect for a process that then dies."""
    (lease,) = await ulak.store.submit(CLAIM_SUSPECTS, SuspectDemand(DEAD_OWNER, (kind,), 1, alone=alone))
    await ulak.loops._rescuer.beat()
    return lease.id


async def test_an_attempt_cut_off_by_a_death_is_marked_uncertain_and_runs_again(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        (job,) = await die_with(ulak, NewJob("mail.send", 1))
        await drain(ulak)
        record = await ulak.jobs.get(job)
        events = [event.name for event in await events_with(ulak, "done") if event.job == job]
    assert (record.status, record.attempt, record.crashes) == ("done", 2, 1)
    assert recorder.jobs[0].uncertain
    assert events == ["accepted", "started", "uncertain", "started", "done"]
    assert "uncertain" in [entry.word for entry in record.timeline]
    assert ulak.telemetry.counters[("duplicate_runs", "mail.send", "")] == 1
    uncertain = {kind: n for (name, kind, _), n in ulak.telemetry.counters.items() if name == "jobs_uncertain" and n}
    assert uncertain == {"mail.send": 1}


async def test_a_result_of_the_dead_is_not_kept_after_the_rescue(make, recorder):
    ulak = make(work=False)
    async with ulak:
        job = await ulak.enqueue("mail.send")
        (lease,) = (await claim(ulak, "mail.send", owner=DEAD_OWNER)).leases
        await ulak.loops._rescuer.beat()
        late = Settlement(job, lease.epoch, "mail.send", None, 1, Done("late"))
        assert await ulak.store.submit(SETTLE, [late]) == set()
        assert (await ulak.jobs.get(job)).status == "suspect"


async def test_a_job_that_must_not_be_sent_twice_waits_for_a_person(make, recorder):
    ulak = make()
    recorder.on(ulak, "pay.send")
    async with ulak:
        (job,) = await die_with(ulak, NewJob("pay.send", 1, on_uncertain="hold"))
        await drain(ulak)
        record = await ulak.jobs.get(job)
        assert record.status == "dead"
        assert "may have had its effect" in record.detail
        assert recorder.jobs == []
        await ulak.jobs.redrive([job])  # the person has decided
        await drain(ulak)
    assert recorder.payloads == [1]
    assert recorder.jobs[0].uncertain  # decided to try, not that nothing had happened


async def test_a_job_that_was_cancelled_when_its_process_died_is_cancelled(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        async with nothing_is_claimed(ulak):
            job = await ulak.enqueue("mail.send", key="ada")
            await ulak.enqueue("mail.send", "next", key="ada")
            await claim(ulak, "mail.send", owner=DEAD_OWNER)
            assert await ulak.jobs.cancel(job) == "cancelling"
            await ulak.loops._rescuer.beat()
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "cancelled"
    assert recorder.payloads == ["next"]


async def test_a_job_that_keeps_killing_its_process_is_a_dead_letter_and_its_neighbours_are_done(make, recorder):
    ulak = make(spine={"poison_deaths": 3})
    recorder.on(ulak, "mail.send")
    async with ulak:
        async with nothing_is_claimed(ulak):
            ids = await ulak.enqueue_many([NewJob("mail.send", n) for n in range(4)])
            await claim(ulak, "mail.send", 4, owner=DEAD_OWNER)
            await ulak.loops._rescuer.beat()
            poison = await die_again(ulak, "mail.send", alone=False)
            assert await die_again(ulak, "mail.send", alone=True) == poison
        await drain(ulak)
        records = {job: await ulak.jobs.get(job) for job in ids}
    assert records.pop(poison).detail == "poison: the process died 3 times while this job was running"
    assert {record.status for record in records.values()} == {"done"}
    assert len(recorder.jobs) == 3


@pytest.mark.parametrize(("of_the_kind", "in_all", "most"), [(2, 100, 2), (100, 3, 3), (100, 100, 8)])
async def test_suspects_run_a_few_at_a_time_and_within_the_limits(make, recorder, of_the_kind, in_all, most):
    ulak = make(worker={"concurrency": in_all})
    recorder.release = asyncio.Event()
    recorder.on(ulak, "mail.send", concurrency=of_the_kind)
    async with ulak:
        await die_with(ulak, *[NewJob("mail.send", n) for n in range(30)])
        while len(ulak.loops.worker.running) < most:
            await asyncio.sleep(0)
        for _ in range(10):  # commits, in which more would be claimed
            await ulak.write(lambda _: None)
        assert len(ulak.loops.worker.running) == most
        recorder.release.set()
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 30
    assert recorder.most_at_once <= most


async def test_a_job_that_died_twice_has_the_process_to_itself(make):
    ulak = make()
    beside = []

    @ulak.handles("mail.send", concurrency=10)
    async def send(job):
        for _ in range(5):
            await asyncio.sleep(0)
        beside.append((job.payload, job.crashes, len(ulak.loops.worker.running)))

    async with ulak:
        async with nothing_is_claimed(ulak):
            lonely = await twice_dead(ulak)
            await ulak.enqueue_many([NewJob("mail.send", n) for n in range(50)])
        await drain(ulak)
        for _ in range(3):
            await advance(ulak, 2)
        assert (await ulak.jobs.get(lonely)).status == "done"
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 51
    (alone,) = [number for payload, crashes, number in beside if crashes == 2]
    assert alone == 1


async def twice_dead(ulak):
    job = await ulak.enqueue("mail.send", "twice", priority=0)
    await claim(ulak, "mail.send", owner=DEAD_OWNER)
    await ulak.loops._rescuer.beat()
    await die_again(ulak, "mail.send", alone=False)
    return job


async def test_of_two_jobs_that_died_twice_each_has_the_process_to_itself_one_soon_after_the_other(make):
    ulak = make()
    beside = []

    @ulak.handles("mail.send", concurrency=10)
    async def send(_):
        await asyncio.sleep(0)
        beside.append(len(ulak.loops.worker.running))

    async with ulak:
        async with nothing_is_claimed(ulak):
            pair = [await twice_dead(ulak) for _ in range(2)]
        while [(await ulak.jobs.get(job)).status for job in pair] != ["done", "done"]:
            ulak.clock.advance(0.25)
            await asyncio.sleep(0.001)
            assert ulak.clock.monotonic() < 30
    assert beside == [1, 1]


async def test_a_long_job_keeps_the_lonely_one_waiting_but_not_the_others(make):
    ulak = make()
    release, started, quick = asyncio.Event(), asyncio.Event(), []

    @ulak.handles("mail.send")
    async def send(job):
        quick.append(job.payload)

    @ulak.handles("film.render", timeout_seconds=10_000)
    async def render(_):
        started.set()
        await release.wait()

    async with ulak:
        await ulak.enqueue("film.render")
        await started.wait()
        async with nothing_is_claimed(ulak):
            lonely = await twice_dead(ulak)
        for number in range(20):
            await ulak.enqueue("mail.send", number)
            ulak.clock.advance(1)
            for _ in range(50):
                await asyncio.sleep(0)
        while len(quick) < 20:  # claimed again after the patience is over
            ulak.clock.advance(1)
            await asyncio.sleep(0.001)
        assert (await ulak.jobs.get(lonely)).status == "suspect"
        release.set()
        while (await ulak.jobs.get(lonely)).status != "done":
            ulak.clock.advance(5)
            await asyncio.sleep(0.001)


async def test_a_lonely_job_is_not_forgotten_while_the_worker_is_never_idle(make):
    ulak = make()
    done = asyncio.Event()

    @ulak.handles("mail.send", concurrency=4)
    async def send(job):
        ulak.clock.advance(0.05)
        if job.payload == "twice":
            done.set()
        elif not done.is_set():
            await ulak.enqueue("mail.send", "more")

    async with ulak:
        async with nothing_is_claimed(ulak):
            lonely = await twice_dead(ulak)
        await ulak.enqueue_many([NewJob("mail.send", "more")] * 8)
        async with asyncio.timeout(HANG_SECONDS):
            await done.wait()
        await drain(ulak)
        assert (await ulak.jobs.get(lonely)).status == "done"


async def test_a_suspect_that_nobody_here_can_run_holds_up_nobody(make, recorder):
    ulak = make()
    recorder.on(ulak, "sms.send")
    async with ulak:
        async with nothing_is_claimed(ulak):
            lonely = await twice_dead(ulak)  # of mail.send, which has no handler in this process
        for number in range(10):
            await ulak.enqueue("sms.send", number)
            await recorder.until(number + 1)
        assert (await ulak.jobs.get(lonely)).status == "suspect"
    assert recorder.payloads == list(range(10))


@pytest.mark.parametrize("number", [1, 600])
async def test_everything_that_a_dead_owner_held_is_freed_page_by_page(make, number):
    ulak = make(work=False)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", n, key=f"k{n}") for n in range(number)])
        await claim(ulak, "mail.send", number, owner=DEAD_OWNER)
        await ulak.loops._rescuer.beat()
        counts = (await ulak.jobs.counts())["mail.send"]
        assert counts.get("running", 0) == 0
        assert counts["suspect"] == number
        assert (await ulak.jobs.tally())["mail.send"]["uncertain"] == number


async def test_a_heartbeat_that_failed_is_made_up_for_within_a_second(make, clock, monkeypatch):
    """Others must not take for dead who had to wait for a lock: until its next turn its lease may be over."""
    ulak = make()
    async with ulak:
        failed, made_up = asyncio.Event(), asyncio.Event()

        async def beat():
            if not failed.is_set():
                failed.set()
                raise Unavailable("another transaction holds what this one needs")
            made_up.set()
            return []

        monkeypatch.setattr(ulak.loops._rescuer, "beat", beat)
        while not failed.is_set():
            clock.advance(ulak.loops._rescuer.pause_seconds)
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        clock.advance(MAX_SLEEP_SECONDS)
        async with asyncio.timeout(30):
            await made_up.wait()
