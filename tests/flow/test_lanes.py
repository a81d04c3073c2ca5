"""Lanes: async on the loop, threads for blocking code."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from tests.flow.conftest import build
from ulak import Backoff, Conflict, Done, Invalid, NewJob, Permanent
from ulak.cli.haste import Haste
from ulak.spine.units.dead_letters import Filter
from ulak.testing import advance, drain


async def test_a_blocking_handler_runs_in_a_thread_and_its_answer_counts(make):
    ulak = make()
    threads = set()

    @ulak.handles("file.read", lane="thread")
    def read(job):
        threads.add(threading.current_thread().name)
        if job.payload == 3:
            raise Permanent("no such file")
        return Done({"bytes": job.payload})

    async with ulak:
        ids = await ulak.enqueue_many([NewJob("file.read", n) for n in range(5)])
        await drain(ulak)
        records = [await ulak.jobs.get(job) for job in ids]
    assert [record.status for record in records] == ["done", "done", "done", "dead", "done"]
    assert records[1].detail == {"bytes": 1}
    assert all(name.startswith("ulak-thread") for name in threads)


async def test_a_library_leaves_its_hosts_switch_interval_alone(make):
    ulak, before, during = make(), sys.getswitchinterval(), []

    @ulak.handles("file.read", lane="thread")
    def read(job):
        during.append(sys.getswitchinterval())

    async with ulak:
        await ulak.enqueue("file.read")
        await drain(ulak)
    assert during == [before]


async def test_in_a_process_of_ours_the_writer_gets_its_turn_soon_while_handlers_are_on_threads(make):
    ulak = make()
    ulak.thread_context = Haste()
    before, during = sys.getswitchinterval(), []

    @ulak.handles("file.read", lane="thread")
    def read(job):
        during.append(sys.getswitchinterval())

    async with ulak:
        await ulak.enqueue_many([NewJob("file.read") for _ in range(5)])
        await drain(ulak)
    assert all(seconds < before for seconds in during)
    assert len(during) == 5
    assert sys.getswitchinterval() == before


async def test_two_ulaks_with_handlers_on_threads_leave_the_interpreter_as_it_was(clock):
    before, release, running = sys.getswitchinterval(), threading.Event(), threading.Event()
    first, second = build("memory:", clock), build("memory:", clock)
    first.thread_context = second.thread_context = Haste()
    during = []

    @first.handles("file.hold", lane="thread")
    def hold(job):
        running.set()
        release.wait(10)

    @second.handles("file.read", lane="thread")
    def read(job):
        during.append(sys.getswitchinterval())

    async with first:
        await first.enqueue("file.hold")
        while not running.is_set():
            await asyncio.sleep(0)
        async with second:  # opened while the interval is short
            await second.enqueue("file.read")
            await drain(second)
            during.append(sys.getswitchinterval())  # the other one still has its handler on a thread
            release.set()
            await drain(first)
            await second.enqueue("file.read")
            await drain(second)
    assert sys.getswitchinterval() == before
    assert len(during) == 3
    assert all(seconds < before for seconds in during)


class Elsewhere:
    """A lane of one's own."""

    def __init__(self) -> None:
        self.ran: list[object] = []
        self.closed = 0

    async def run(self, handler, job):
        self.ran.append(job.payload)
        return handler.call(job)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("name", ["thread", "process"])
async def test_a_lane_of_ones_own_is_used_each_time_that_ulak_is_opened_and_closed_with_it(clock, name):
    ulak, lane = build("memory:", clock), Elsewhere()
    ulak.use_lane(name, lane)
    ulak.handles("file.read", lane=name)(read_file)
    for number in range(2):
        async with ulak:
            job = await ulak.enqueue("file.read", number)
            await drain(ulak)
            assert (await ulak.jobs.get(job)).detail == threading.main_thread().name
        assert lane.closed == number + 1
    assert lane.ran == [0, 1]


def read_file(_):
    return threading.current_thread().name


async def test_a_lane_that_would_never_be_asked_is_refused(clock):
    ulak = build("memory:", clock)
    for name in ("async", "moon"):
        with pytest.raises(Invalid, match=f"no lane '{name}' can be filled; there are: thread, process"):
            ulak.use_lane(name, Elsewhere())
    async with ulak:
        with pytest.raises(Conflict, match="a lane must be declared before"):
            ulak.use_lane("thread", Elsewhere())


async def test_no_more_blocking_handlers_run_than_there_are_threads(make):
    ulak = make(worker={"threads": 3})
    release, running, most = threading.Event(), [], []

    @ulak.handles("file.read", lane="thread", concurrency=100)
    def read(job):
        running.append(job.id)
        most.append(len(running))
        release.wait(10)
        running.remove(job.id)

    async with ulak:
        await ulak.enqueue_many([NewJob("file.read") for _ in range(12)])
        while len(running) < 3:
            await asyncio.sleep(0.001)
        assert (await ulak.jobs.counts())["file.read"]["ready"] == 9
        release.set()
        await drain(ulak)
    assert max(most) == 3


async def until_given_up(ulak, job, started):
    """Its thread has begun, and its time is over."""
    while not started.is_set():
        await asyncio.sleep(0.001)
    ulak.clock.advance(6)
    while (await ulak.jobs.get(job)).status == "running":
        await asyncio.sleep(0.001)


async def test_a_blocking_handler_that_takes_too_long_is_given_up_and_its_late_result_ignored(make):
    ulak = make()
    release, started = threading.Event(), threading.Event()

    @ulak.handles("file.read", lane="thread", timeout_seconds=5, backoff=Backoff(10, jitter=0))
    def read(job):
        started.set()
        if job.attempt == 1:
            release.wait(10)
            return Done("late")
        return Done({"knows": job.uncertain})

    async with ulak:
        job = await ulak.enqueue("file.read")
        await until_given_up(ulak, job, started)
        release.set()
        await advance(ulak, 10)
        record = await ulak.jobs.get(job)
    assert (record.status, record.detail, record.attempt) == ("done", {"knows": True}, 2)
    assert "uncertain" in [entry.word for entry in record.timeline]


@pytest.mark.parametrize("max_attempts", [1, 5])
async def test_a_blocking_handler_that_takes_too_long_is_not_run_again_if_its_job_must_not(make, max_attempts):
    """Nobody knows what the thread has done, and it goes on."""
    ulak = make()
    release, started = threading.Event(), threading.Event()

    @ulak.handles("file.pay", lane="thread", timeout_seconds=5, max_attempts=max_attempts)
    def pay(_):
        started.set()
        release.wait(10)

    async with ulak:
        job = await ulak.enqueue("file.pay", on_uncertain="hold")
        await until_given_up(ulak, job, started)
        release.set()
        assert await ulak.jobs.find_dead(Filter(error_class="uncertain")) == [job]
        assert ulak.telemetry.counters["jobs_uncertain", "file.pay", ""] == 1
        assert "took longer than 5 s" in str((await ulak.jobs.get(job)).detail)


async def test_one_that_always_takes_too_long_is_no_danger_to_its_process_and_never_gets_it_alone(make):
    ulak = make()
    release, crashes = threading.Event(), []

    @ulak.handles("file.slow", lane="thread", timeout_seconds=5, max_attempts=4, backoff=Backoff(1, jitter=0))
    def slow(job):
        crashes.append(job.crashes)
        release.wait(10)

    async with ulak:
        job = await ulak.enqueue("file.slow")
        for attempt in range(1, 5):
            while len(crashes) < attempt:
                ulak.clock.advance(1)
                await asyncio.sleep(0.001)
            ulak.clock.advance(6)
        while (record := await ulak.jobs.get(job)).status != "dead":
            ulak.clock.advance(1)
            await asyncio.sleep(0.001)
        release.set()
    assert crashes == [0, 1, 1, 1]
    assert "gave up after 4 attempts" in str(record.detail)


def test_a_handler_that_does_not_fit_its_lane_is_refused_at_once(make):
    ulak = make()
    with pytest.raises(Invalid, match="plain function"):
        ulak.handles("a.b")(lambda job: None)
    with pytest.raises(Invalid, match="can't run in the thread lane"):

        @ulak.handles("a.b", lane="thread")
        async def handle(job):
            """Async in the wrong lane."""


async def test_blocking_and_async_handlers_do_not_wait_for_each_other(make, recorder):
    ulak = make(worker={"threads": 1})
    release = threading.Event()
    finished = []

    @ulak.handles("file.read", lane="thread")
    def read(_):
        release.wait(10)
        finished.append(1)

    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue_many([NewJob("file.read")] * 3)
        await ulak.enqueue_many([NewJob("mail.send", n) for n in range(10)])
        await recorder.until(10)
        assert finished == []
        release.set()
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 10
    assert len(finished) == 3


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(2)], ids=repr)
async def test_an_odd_error_on_a_thread_is_a_failed_attempt(make, error):
    ulak = make()

    @ulak.handles("file.read", lane="thread", max_attempts=1)
    def read(job):
        raise error  # StopIteration is what next() of nothing raises

    async with ulak:
        job = await ulak.enqueue("file.read")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, type(error).__name__ in record.detail) == ("dead", True)


async def test_who_comes_after_a_thread_that_hangs_waits_for_it_and_is_not_charged(make):
    ulak = make(worker={"threads": 1})
    release, hanging, called = threading.Event(), threading.Event(), []

    @ulak.handles("file.hang", lane="thread", timeout_seconds=5, max_attempts=1)
    def hang(job):
        hanging.set()
        release.wait(30)

    @ulak.handles("file.read", lane="thread", timeout_seconds=5, max_attempts=1)
    def read(job):
        called.append(job.attempt)

    async with ulak:
        stuck = await ulak.enqueue("file.hang")
        while not hanging.is_set():
            await asyncio.sleep(0.001)
        ulak.clock.advance(6)
        while (await ulak.jobs.get(stuck)).status == "running":
            await asyncio.sleep(0.001)
        after = await ulak.enqueue("file.read")
        for _ in range(10):
            ulak.clock.advance(6)
            assert (await ulak.jobs.get(after)).status == "ready"
        release.set()
        while not called:
            await asyncio.sleep(0.001)
        await drain(ulak)
        assert (await ulak.jobs.get(after)).status == "done"
    assert called == [1]


async def test_a_handler_that_cancels_its_own_task_has_failed_and_leaves_its_place(make, recorder):
    ulak = make()

    @ulak.handles("mail.odd", concurrency=1, max_attempts=1)
    async def odd(job):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async with ulak:
        jobs = [await ulak.enqueue("mail.odd") for _ in range(3)]
        await drain(ulak)
        records = [await ulak.jobs.get(job) for job in jobs]
    assert [record.status for record in records] == ["dead"] * 3
    assert "cancelled" in records[0].detail
