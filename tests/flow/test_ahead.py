"""Timers that a worker holds until they are due: never early, and still to be cancelled, stopped and outrun."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import build
from ulak import NewJob, Retry, Snooze
from ulak.clock import to_datetime
from ulak.spine import probe
from ulak.testing import advance, drain

SOON = 0.02


async def held(ulak, job: int) -> None:
    """Wait until the worker has the job, without a step of the clock."""
    while (await ulak.jobs.get(job)).status != "running":
        await asyncio.sleep(0)


async def test_a_job_that_is_held_starts_at_its_millisecond_by_itself(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        due_at = ulak.clock.now() + 20
        job = await ulak.enqueue("mail.send", due_at=to_datetime(due_at))
        await held(ulak, job)
        for _ in range(19):
            ulak.clock.advance(0.001)
            await asyncio.sleep(0.001)
        assert recorder.jobs == []
        ulak.clock.advance(0.001)
        await recorder.started.wait()
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert recorder.jobs[0].started_millis == due_at
    assert record.started_at == record.due_at == to_datetime(due_at)
    assert [(entry.word, entry.at) for entry in record.timeline[1:]] == [
        ("started", to_datetime(due_at)),
        ("done", to_datetime(due_at)),
    ]


async def test_drain_does_not_wait_for_what_is_held_and_does_not_run_it(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        soon = await ulak.enqueue("mail.send", "soon", delay_seconds=SOON)
        await ulak.enqueue("mail.send", "now")
        await drain(ulak)
        assert recorder.payloads == ["now"]
        await held(ulak, soon)
        await drain(ulak)
        assert recorder.payloads == ["now"]
        await advance(ulak, SOON)
    assert recorder.payloads == ["now", "soon"]


async def test_drain_starts_what_is_held_after_many_small_steps_of_the_clock(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        job = await ulak.enqueue("mail.send", delay_seconds=0.03)
        await held(ulak, job)
        for _ in range(30):  # thirty times 0.001 is not 0.03 in binary
            ulak.clock.advance(0.001)
        await drain(ulak)
        assert len(recorder.jobs) == 1


async def test_a_job_that_is_cancelled_while_it_is_held_never_runs(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        job = await ulak.enqueue("mail.send", delay_seconds=SOON)
        await held(ulak, job)
        assert await ulak.jobs.cancel(job) == "cancelling"
        while (record := await ulak.jobs.get(job)).status == "running":  # at once: the clock stands still
            await asyncio.sleep(0)
        assert (record.status, record.started_at) == ("cancelled", None)
        await advance(ulak, 1)
    assert recorder.jobs == []


async def test_a_stop_hands_back_what_is_held_and_the_next_start_runs_it_at_its_time(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock)
    recorder.on(ulak, "mail.send")
    await ulak.open()
    job = await ulak.enqueue("mail.send", delay_seconds=SOON)
    await held(ulak, job)
    report = await ulak.close()
    assert (report.released, report.finished, report.cancelled, report.left) == (1, 0, 0, ())
    again = build(sqlite_address, clock)
    recorder.on(again, "mail.send")
    async with again:
        await drain(again)
        assert recorder.jobs == []
        await advance(again, SOON)
        record = await again.jobs.get(job)
    assert (record.status, record.attempt, record.crashes) == ("done", 1, 0)


async def test_a_claim_on_its_way_does_not_take_again_what_a_stop_hands_back(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock)
    recorder.on(ulak, "mail.send")
    await ulak.open()
    job = await ulak.enqueue("mail.send", delay_seconds=SOON)
    await held(ulak, job)
    stopping = []
    probe.listen("worker.before_claim", lambda: stopping or stopping.append(asyncio.create_task(ulak.close())))
    try:
        ulak.loops.worker.claimer.note_all()
        while not stopping:
            await asyncio.sleep(0)
        report = await stopping[0]
    finally:
        probe.clear()
    assert (report.released, report.left) == (1, ())
    async with build(sqlite_address, clock, work=False) as look:
        assert [event.name for event in await look.jobs.events()] == ["accepted", "started", "released"]


async def test_a_stop_does_not_report_what_was_cancelled_while_it_was_held_as_released(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    await ulak.open()
    job = await ulak.enqueue("mail.send", delay_seconds=SOON)
    await held(ulak, job)
    await ulak.jobs.cancel(job)
    assert (await ulak.close()).released == 0


async def test_the_time_that_a_job_was_held_is_not_part_of_its_timeout(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", timeout_seconds=0.01)
    async with ulak:
        job = await ulak.enqueue("mail.send", delay_seconds=SOON)
        await held(ulak, job)
        ulak.clock.advance(0.019)
        ulak.loops.worker.watch()
        await advance(ulak, 0.001)
        assert (await ulak.jobs.get(job)).status == "done"


async def test_the_only_place_of_a_kind_is_left_to_work_that_is_due(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=1)
    async with ulak:
        soon = await ulak.enqueue("mail.send", "soon", delay_seconds=SOON)
        await ulak.loops.alarm.promote_due()
        await ulak.enqueue("mail.send", "now")
        await drain(ulak)
        assert recorder.payloads == ["now"]
        assert (await ulak.jobs.get(soon)).status == "deferred"
        await advance(ulak, SOON)
    assert recorder.payloads == ["now", "soon"]


async def test_held_jobs_leave_capacity_for_work_that_is_due(make, recorder):
    ulak = make(worker={"concurrency": 10})
    recorder.on(ulak, "mail.send", concurrency=10)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", "soon", delay_seconds=SOON)] * 50)
        await ulak.loops.alarm.promote_due()
        await ulak.loops.alarm.promote_due()
        await ulak.enqueue_many([NewJob("mail.send", "now")] * 20)
        await drain(ulak)
        assert recorder.payloads == ["now"] * 20
        await advance(ulak, SOON)
        assert recorder.payloads == ["now"] * 20 + ["soon"] * 50
    assert recorder.most_at_once <= 10


async def test_a_job_of_a_key_that_is_due_does_not_wait_for_one_that_is_due_soon(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", "soon", key="ada", delay_seconds=SOON)
        await ulak.loops.alarm.promote_due()
        await ulak.enqueue("mail.send", "now", key="ada")
        await drain(ulak)
        assert recorder.payloads == ["now"]
        await advance(ulak, SOON)
    assert recorder.payloads == ["now", "soon"]


@pytest.mark.parametrize(("pause", "seconds"), [(Retry(SOON), SOON), (Snooze(0.1), 0.1)], ids=repr)
async def test_a_short_pause_is_not_cut_short(make, recorder, pause, seconds):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [pause]
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, seconds - 0.001)
        assert len(recorder.jobs) == 1
        await advance(ulak, 0.001)
    assert [job.started_millis - recorder.jobs[0].started_millis for job in recorder.jobs] == [0, seconds * 1000]


async def test_a_timer_is_held_in_each_lane(make):
    ulak = make()
    started = []

    @ulak.handles("mail.send", lane="thread")
    def send(job):
        started.append(job.started_millis)

    async with ulak:
        due_at = ulak.clock.now() + 20
        await held(ulak, await ulak.enqueue("mail.send", delay_seconds=SOON))
        await drain(ulak)
        assert started == []
        await advance(ulak, SOON)
    assert started == [due_at]


@pytest.mark.postgres
async def test_what_another_process_made_ready_is_held_by_the_one_that_claims_it(clock, recorder):
    from tests.postgres_server import fresh_database

    with fresh_database() as address:
        first, second = build(address, clock), build(address, clock)
        recorder.on(second, "mail.send")
        recorder.on(first, "mail.send")
        async with first, second:
            jobs = await first.enqueue_many([NewJob("mail.send", n, delay_seconds=SOON) for n in range(20)])
            for job in jobs:
                await held(second, job)
            assert recorder.jobs == []
            clock.advance(SOON)
            await drain(first)
            await drain(second)
            assert {(await first.jobs.get(job)).status for job in jobs} == {"done"}
    assert sorted(recorder.payloads) == list(range(20))
