"""A store that stalls: who waits is answered or told, attempts still end in time, and a stop keeps its limit."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from tests.flow.conftest import build
from tests.flow.stall import Stall
from tests.flow.stores import POSTGRES, address_of
from ulak import Conflict, Unavailable
from ulak.spine import store as seam
from ulak.spine.loops.rescuer import BEAT, Beat
from ulak.spine.query import Queries
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.stores.writer import read_pool
from ulak.testing import drain

sql = Queries("ulak.spine")

BRIEF = {"stop_grace_seconds": 0.05, "stop_cancel_seconds": 0.05}
LONG = {"stop_grace_seconds": 30, "stop_cancel_seconds": 30}


@pytest.fixture(params=["sqlite", *POSTGRES])
def kept(request, tmp_path):
    """The address of an empty store that outlives its Ulak."""
    with contextlib.contextmanager(address_of)(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def _brief_end(monkeypatch):
    monkeypatch.setattr(seam, "LAST_SECONDS", 0.1)


async def turns(number=100):
    """As far as everybody gets without the store."""
    for _ in range(number):
        await asyncio.sleep(0)


async def outcome_of(waiting):
    with pytest.raises(Unavailable) as failure:
        await waiting
    return failure.value.outcome


async def test_who_enqueues_during_a_stall_waits_and_is_answered_and_every_job_runs_once(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=100)
    async with ulak:
        with Stall(ulak) as stall:
            waiting = [asyncio.create_task(ulak.enqueue("mail.send", number)) for number in range(50)]
            await stall.is_reached()
            waiting += [asyncio.create_task(ulak.enqueue("mail.send", number)) for number in range(50, 100)]
            await turns()
            assert not any(task.done() for task in waiting)
            assert recorder.jobs == []
        ids = await asyncio.gather(*waiting)
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.send"] == {"accepted": 100, "done": 100}
    assert sorted((job.id, job.crashes) for job in recorder.jobs) == sorted((job, 0) for job in ids)


async def test_a_result_that_met_a_stall_is_kept_when_it_is_over(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.release = asyncio.Event()
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await recorder.started.wait()
        with Stall(ulak) as stall:
            recorder.release.set()
            await stall.is_reached()
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.attempt, record.crashes) == ("done", 1, 0)


async def test_an_attempt_still_ends_by_its_timeout(make, clock, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", timeout_seconds=5, max_attempts=3)
    recorder.release = asyncio.Event()
    async with ulak:

        async def hang():
            await asyncio.Event().wait()

        job = await ulak.enqueue("mail.send")
        await recorder.started.wait()
        ulak.store.maintain = hang  # upkeep asks the database too
        with Stall(ulak):
            while recorder.at_once:
                clock.advance(0.5)
                await turns(20)
        while (record := await ulak.jobs.get(job)).status != "deferred":
            await asyncio.sleep(0)
    assert (record.attempt, record.crashes) == (1, 0)


@pytest.mark.usefixtures("_brief_end")
async def test_a_stop_keeps_its_limit_and_tells_who_waits_that_the_outcome_is_unknown(kept):
    ulak = build(kept, None, work=False, worker=BRIEF)
    await ulak.open()
    with Stall(ulak) as stall:
        under_way = asyncio.create_task(ulak.enqueue("mail.send"))
        await stall.is_reached()
        in_line = asyncio.create_task(ulak.enqueue("mail.send"))
        await turns()
        report = await ulak.close()
        assert not stall._over.is_set()
        assert report.stuck
        assert await outcome_of(under_way) == "unknown"
        assert await outcome_of(in_line) == "no"
        stall.end_and_join()


async def with_a_job_under_way(kept, recorder, limits):
    ulak = build(kept, None, worker=limits)
    recorder.on(ulak, "mail.send")
    recorder.release = asyncio.Event()
    await ulak.open()
    job = await ulak.enqueue("mail.send")
    await recorder.started.wait()
    return ulak, job


@pytest.mark.usefixtures("_brief_end")
async def test_a_stop_keeps_its_limit_while_results_and_claims_hang(kept, recorder):
    ulak, job = await with_a_job_under_way(kept, recorder, BRIEF)
    with Stall(ulak) as stall:
        recorder.release.set()
        await stall.is_reached()
        report = await ulak.close()
        assert report.stuck
        stall.end_and_join()
    async with build(kept, None, work=False) as look:
        assert (await look.jobs.get(job)).status in {"done", "running"}  # its end was kept, or it will be uncertain


async def test_a_stop_waits_within_its_limit_for_a_stall_to_end_and_then_nothing_is_lost(kept, recorder):
    ulak, job = await with_a_job_under_way(kept, recorder, LONG)
    with Stall(ulak) as stall:
        recorder.release.set()
        await stall.is_reached()
        stopping = asyncio.create_task(ulak.close())
        await turns()
        assert not stopping.done()
        stall.end()
        report = await stopping
    assert (report.left, report.stuck) == ((), False)
    async with build(kept, None, work=False) as look:
        assert (await look.jobs.get(job)).status == "done"


@pytest.mark.usefixtures("_brief_end")
async def test_the_file_stays_locked_while_a_commit_that_was_left_behind_may_still_reach_it(sqlite_address):
    ulak = build(sqlite_address, None, work=False, worker=BRIEF)
    await ulak.open()
    with Stall(ulak) as stall:
        lost = asyncio.create_task(ulak.enqueue("mail.send", 1))
        await stall.is_reached()
        await ulak.close()
        assert await outcome_of(lost) == "unknown"
        with pytest.raises(Conflict, match="another process"):
            await build(sqlite_address, None, work=False).open()
        stall.end_and_join()
    async with build(sqlite_address, None, work=False) as again:
        assert [record.payload for record in await again.jobs.list()] == [1]  # it was kept after all


async def test_who_reads_is_told_when_the_database_does_not_answer_and_can_read_again_later(make, monkeypatch):
    over = threading.Event()
    async with make(work=False) as ulak:
        monkeypatch.setattr(read_pool, "ANSWER_SECONDS", 0.05)
        stuck = [ulak.store.read(lambda _: over.wait(60)) for _ in range(read_pool.THREADS)]
        told = await asyncio.gather(*stuck, ulak.jobs.counts(), return_exceptions=True)
        assert [type(one) for one in told] == [Unavailable] * 3
        over.set()
        monkeypatch.undo()
        assert await ulak.jobs.counts() == {}


@pytest.fixture
async def two_at_work(tmp_path, clock, recorder):
    """Two on one database, of which the first has a job under way; the test says who beats when."""
    if not POSTGRES:
        pytest.skip("there is no PostgreSQL server to test with")
    with contextlib.contextmanager(address_of)("postgres", tmp_path) as database:
        one, other = build(database, clock), build(database, clock, work=False)
        recorder.on(one, "mail.send")
        recorder.release = asyncio.Event()
        async with one, other:
            await one.enqueue("mail.send")
            await recorder.started.wait()
            for task in one.loops._tasks + other.loops._tasks:
                if task.get_name() == "ulak-heartbeat":
                    task.cancel()
            yield one, other
            recorder.release.set()


async def is_taken_for_dead(ulak):
    (record,) = await ulak.jobs.list(kind="mail.send")
    return (record.status, record.crashes) != ("running", 0)


@pytest.mark.postgres
async def test_processes_do_not_declare_one_another_dead_after_a_stall_longer_than_the_lease(two_at_work, clock):
    one, other = two_at_work
    clock.advance(one.settings.spine.lease_seconds + 1)
    await other.loops._rescuer.beat()
    await one.loops._rescuer.beat()
    await other.loops._rescuer.beat()
    assert not await is_taken_for_dead(one)


@pytest.mark.postgres
async def test_nor_after_one_that_has_outlasted_only_the_older_lease(two_at_work, clock):
    one, other = two_at_work
    lease_seconds = one.settings.spine.lease_seconds
    clock.advance(lease_seconds / 3)
    await other.loops._rescuer.beat()
    clock.advance(lease_seconds * 0.9)
    await other.loops._rescuer.beat()
    assert not await is_taken_for_dead(one)


@pytest.mark.postgres
async def test_nor_when_a_session_that_is_back_has_renewed_the_own_lease_before_the_heartbeat(two_at_work, clock):
    one, other = two_at_work
    await other.loops._rescuer.beat()
    clock.advance(one.settings.spine.lease_seconds + 1)
    await other.store.write(renew, other.store.owner, clock.now() + 15_000)
    await other.loops._rescuer.beat()
    assert not await is_taken_for_dead(one)


def renew(tx, owner, lease_at):
    """As a session does that has lost its connection and has a new one."""
    tx.execute(sql.beat_owner, id=owner, lease_at=lease_at)


@pytest.mark.postgres
async def test_nor_if_it_renews_its_lease_between_the_look_and_the_rescue(two_at_work, clock):
    one, other = two_at_work
    lease_seconds = one.settings.spine.lease_seconds
    await other.loops._rescuer.beat()
    clock.advance(lease_seconds * 0.4)
    await other.loops._rescuer.beat()
    clock.advance(lease_seconds * 0.4)
    await other.loops._rescuer.beat()
    clock.advance(lease_seconds * 0.4)
    beat = Beat(other.store.owner, round(lease_seconds * 1000), multi_process=True, last_at=clock.now())
    pulse = await other.store.submit(BEAT, beat)
    assert pulse.lost == [one.store.owner]
    await one.loops._rescuer.beat()
    assert await other.store.submit(RESCUE, Lost(one.store.owner, 3, presumed=True)) == {}
    assert not await is_taken_for_dead(one)


@pytest.mark.postgres
async def test_who_is_really_gone_is_found_at_the_heartbeat_after_that(two_at_work, clock):
    one, other = two_at_work
    clock.advance(one.settings.spine.lease_seconds + 1)
    await other.loops._rescuer.beat()
    await other.loops._rescuer.beat()
    assert await is_taken_for_dead(one)


@pytest.mark.usefixtures("_brief_end")
async def test_a_stop_keeps_its_limit_while_a_read_hangs(kept):
    begun, over = threading.Event(), threading.Event()
    ulak = build(kept, None, work=False, worker=BRIEF)
    await ulak.open()
    reading = asyncio.create_task(ulak.store.read(lambda _: (begun.set(), over.wait(60))))
    assert await asyncio.to_thread(begun.wait, 60)
    report = await ulak.close()
    assert report.stuck
    over.set()
    await asyncio.gather(reading, return_exceptions=True)
