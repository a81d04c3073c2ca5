"""Stopping: claim no more, hand back what has not started, wait, cancel, wait again, report; never longer than that."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.flow.conftest import build
from tests.flow.stores import events_with, nothing_is_claimed
from ulak import NewJob, Unavailable
from ulak.spine import probe
from ulak.testing import drain

GRACE = {"stop_grace_seconds": 30, "stop_cancel_seconds": 10}


async def pass_time(clock, until, most=100):
    """Move the clock second by second until something is done; answers the seconds that it took."""
    for second in range(most):
        for _ in range(20):
            await asyncio.sleep(0.0005)
            if until.done():
                return second
        clock.advance(1)
    raise AssertionError(f"not done after {most} seconds of the clock")


async def test_what_runs_may_finish_within_the_grace(make, recorder):
    ulak = make(worker=GRACE)
    recorder.on(ulak, "mail.send", concurrency=5)
    recorder.release = asyncio.Event()
    await ulak.open()
    await ulak.enqueue_many([NewJob("mail.send", n) for n in range(5)])
    while recorder.at_once < 5:
        await asyncio.sleep(0)
    stopping = asyncio.create_task(ulak.close())
    for _ in range(20):
        await asyncio.sleep(0)
    recorder.release.set()
    report = await stopping
    assert (report.finished, report.cancelled, report.left) == (5, 0, ())


async def test_what_does_not_finish_is_cancelled_and_goes_back(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock, worker=GRACE)
    recorder.on(ulak, "mail.send")
    recorder.release = asyncio.Event()
    await ulak.open()
    job = await ulak.enqueue("mail.send", 1)
    await recorder.started.wait()
    stopping = asyncio.create_task(ulak.close())
    assert await pass_time(clock, stopping) in range(29, 34)
    report = await stopping
    assert (report.cancelled, report.left) == (1, ())
    again = build(sqlite_address, clock)
    recorder.on(again, "mail.send")
    recorder.release = None
    async with again:
        await drain(again)
        record = await again.jobs.get(job)
    assert (record.status, record.attempt, record.crashes) == ("done", 2, 0)  # explained, not uncertain
    assert any("stopped" in str(entry.detail) for entry in record.timeline)


async def test_what_cannot_be_stopped_is_left_and_reported_and_uncertain_at_the_next_start(
    sqlite_address, clock, recorder
):
    ulak = build(sqlite_address, clock, worker=GRACE)
    started, never, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @ulak.handles("mail.send")
    async def stubborn(_):
        started.set()
        while not never.is_set():
            try:
                await never.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    await ulak.open()
    job = await ulak.enqueue("mail.send", 1)
    await started.wait()
    stopping = asyncio.create_task(ulak.close())
    assert await pass_time(clock, stopping) in range(39, 47)
    report = await stopping
    assert report.left == (job,)
    never.set()  # it ends after all, too late for anybody to listen
    await ended.wait()
    again = build(sqlite_address, clock)
    recorder.on(again, "mail.send")
    async with again:
        await drain(again)
        assert (await again.jobs.get(job)).crashes == 1


async def test_a_claim_that_is_under_way_when_the_stop_begins_is_handed_back(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock)
    recorder.on(ulak, "mail.send", concurrency=100)
    claiming, reached, go_on = threading.Event(), threading.Event(), threading.Event()

    def hold_the_commit():
        if claiming.is_set():
            reached.set()
            go_on.wait(10)

    await ulak.open()
    async with nothing_is_claimed(ulak):
        ids = await ulak.enqueue_many([NewJob("mail.send") for _ in range(100)])
        probe.listen("worker.before_claim", claiming.set)
        probe.listen("writer.before_commit", hold_the_commit)
    try:
        while not reached.is_set():
            await asyncio.sleep(0)
        stopping = asyncio.create_task(ulak.close())
        while not ulak.loops.worker.claimer.stopping:
            await asyncio.sleep(0)
        for _ in range(100):  # as far as it gets without the claim's answer
            await asyncio.sleep(0)
        go_on.set()
        report = await stopping
    finally:
        go_on.set()
        probe.clear()
    assert (report.released, report.left) == (100, ())
    async with build(sqlite_address, clock, work=False) as look:
        records = [await look.jobs.get(job) for job in ids]
    assert {(record.status, record.attempt) for record in records} == {("ready", 0)}


async def test_a_handler_that_is_waited_for_may_still_enqueue_and_what_it_enqueues_waits_for_the_next_start(
    sqlite_address, clock, recorder
):
    """If it could not, its attempt would fail, with its effect done."""
    ulak, release = build(sqlite_address, clock), asyncio.Event()

    @ulak.handles("order.ship", max_attempts=1)
    async def ship(_):
        recorder.started.set()
        await release.wait()
        await ulak.enqueue("mail.send")

    recorder.on(ulak, "mail.send")
    await ulak.open()
    job = await ulak.enqueue("order.ship")
    await recorder.started.wait()
    stopping = asyncio.create_task(ulak.close())
    await asyncio.sleep(0)
    release.set()
    await stopping
    assert recorder.jobs == []
    async with build(sqlite_address, clock, work=False) as again:
        assert (await again.jobs.get(job)).status == "done"
        assert (await again.jobs.counts())["mail.send"]["ready"] == 1


async def test_nothing_new_is_accepted_after_a_stop_and_who_stood_in_line_is_told(make):
    ulak = make(spine={"capacity": 1})
    await ulak.open()
    await ulak.enqueue("mail.send")
    waiting = asyncio.create_task(ulak.put(NewJob("mail.send")))
    await asyncio.sleep(0)
    await ulak.close()
    with pytest.raises(Unavailable, match=r"stopping|not open|closed"):
        await waiting
    with pytest.raises(Unavailable, match="not open"):
        await ulak.enqueue("mail.send")


async def test_cron_fires_no_more_while_stopping_and_what_was_passed_over_fires_at_the_next_start(
    sqlite_address, clock, recorder
):
    def with_cron():
        ulak = build(sqlite_address, clock, worker={"stop_grace_seconds": 3600})
        recorder.on(ulak, "mail.send")
        ulak.cron("minutely", "* * * * *", "report.make")
        return ulak

    ulak, recorder.release = with_cron(), asyncio.Event()
    await ulak.open()
    await ulak.enqueue("mail.send")
    await recorder.started.wait()
    stopping = asyncio.create_task(ulak.close())
    while not ulak.loops.worker.claimer.stopping:
        await asyncio.sleep(0)
    for _ in range(3):
        clock.advance(60)
        for _ in range(20):
            await ulak.jobs.counts()
    assert "report.make" not in await ulak.jobs.counts()
    recorder.release.set()
    await stopping
    async with with_cron() as again:
        await events_with(again, "cron.fired", 1)
        assert (await again.jobs.counts())["report.make"]["ready"] == 1


async def test_a_stop_under_full_load_keeps_its_limit_and_loses_nothing(sqlite_address, recorder):
    """Real clock, real load: producers press on, some handlers never end, threads are stuck."""
    ulak = build(
        sqlite_address, None, worker={"stop_grace_seconds": 0.3, "stop_cancel_seconds": 0.2, "concurrency": 50}
    )
    stuck = threading.Event()

    @ulak.handles("mail.quick", concurrency=50)
    async def quick(_):
        await asyncio.sleep(0.002)

    @ulak.handles("mail.endless", concurrency=20)
    async def endless(_):
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                if ended:
                    raise

    @ulak.handles("file.stuck", lane="thread")
    def stuck_in_a_thread(_):
        stuck.wait(20)

    accepted, ended = [], False

    async def produce(kind):
        while True:
            try:
                accepted.append(await ulak.enqueue(kind))
            except Unavailable:
                return

    await ulak.open()
    producers = [asyncio.create_task(produce("mail.quick")) for _ in range(100)]
    accepted += await ulak.enqueue_many([NewJob("mail.endless")] * 30 + [NewJob("file.stuck")] * 20)
    while len(accepted) < 3000 or len(ulak.loops.worker.running) < 25:
        await asyncio.sleep(0.001)
    began = time.perf_counter()
    report = await ulak.close()
    took = time.perf_counter() - began
    ended = True
    stuck.set()
    await asyncio.gather(*producers)
    assert took < 0.3 + 0.2 + 5 + 3  # grace, cancel, the last flush, and slack for a busy machine
    assert len(report.left) <= 50
    async with build(sqlite_address, None, work=False) as look:
        counts = await look.jobs.counts()
        tally = await look.jobs.tally()
    live = sum(number for states in counts.values() for name, number in states.items() if name != "oldest_at")
    done = sum(words.get("done", 0) for words in tally.values())
    assert live + done == len(accepted)
    running = sum(states.get("running", 0) for states in counts.values())
    assert running == len(report.left)


async def test_an_ulak_can_be_opened_again_after_it_was_closed(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock)
    recorder.on(ulak, "mail.send")
    for number in range(3):
        async with ulak:
            await ulak.enqueue("mail.send", number)
            await drain(ulak)
    assert recorder.payloads == [0, 1, 2]


async def test_a_thread_that_outlives_the_stop_is_left_and_its_job_is_uncertain_afterwards(sqlite_address, recorder):
    release, running = threading.Event(), threading.Event()
    ulak = build(sqlite_address, None, worker={"stop_grace_seconds": 0, "stop_cancel_seconds": 0})

    @ulak.handles("file.read", lane="thread")
    def read(job):
        running.set()
        release.wait(30)

    await ulak.open()
    job = await ulak.enqueue("file.read", on_uncertain="hold")
    while not running.is_set():
        await asyncio.sleep(0.001)
    report = await ulak.close()
    assert (report.left, report.cancelled) == ((job,), 0)
    again = build(sqlite_address, None)
    recorder.on(again, "file.read")
    async with again:
        await again.loops._rescuer.beat()
        record = await again.jobs.get(job)
    release.set()
    assert (record.status, recorder.jobs) == ("dead", [])
    assert "uncertain" in [entry.word for entry in record.timeline]


async def test_a_thread_that_ends_while_the_stop_still_waits_has_its_result_kept(sqlite_address, clock):
    release, running = threading.Event(), threading.Event()
    ulak = build(sqlite_address, clock, worker={"stop_grace_seconds": 1, "stop_cancel_seconds": 60})

    @ulak.handles("file.read", lane="thread")
    def read(job):
        running.set()
        release.wait(30)
        return "read"

    await ulak.open()
    job = await ulak.enqueue("file.read")
    while not running.is_set():
        await asyncio.sleep(0.001)
    stopping = asyncio.create_task(ulak.close())
    while not clock._sleepers or ulak.loops.worker.claimer.stopping is False:
        await asyncio.sleep(0.001)
    clock.advance(2)
    release.set()
    report = await stopping
    assert (report.left, report.finished) == ((), 1)
    async with build(sqlite_address, clock, work=False) as look:
        record = await look.jobs.get(job)
    assert (record.status, record.detail, record.attempt) == ("done", "read", 1)
