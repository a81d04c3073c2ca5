"""A disk that fills up, a sync that fails, a lost reply: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from tests.flow.conftest import build
from ulak import NewJob, Unavailable
from ulak.testing import advance, drain


class FlakyConnection:
    """The writing connection, whose next commits go as planned: "lost" or "done" before an error, or an error code."""

    def __init__(self, connection, plan):
        self._connection = connection
        self._plan = plan

    def execute(self, statement, *parameters):
        if statement == "COMMIT" and self._plan:
            self._fail(self._plan.pop(0))
        return self._connection.execute(statement, *parameters)

    def _fail(self, step):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC if step == "fsync" else sqlite3.SQLITE_IOERR_WRITE
        if step == "done":
            self._connection.execute("COMMIT")
        raise error

    def __getattr__(self, name):
        return getattr(self._connection, name)


def plan_commits(ulak, *plan):
    session = ulak.store._writer._session
    session._connection = FlakyConnection(session._connection, list(plan))


@pytest.fixture
def ulak(sqlite_address, clock, recorder):
    ulak = build(sqlite_address, clock)
    recorder.on(ulak, "mail.send", capacity=1000)
    return ulak


def limit_pages(tx, extra):
    connection = tx._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + extra}")


async def fill_disk(ulak):
    """Enqueue until not even a small job fits; answers what was acknowledged."""
    accepted = []
    for size in (50_000, 5_000, 500, 1):
        refusal = None
        while refusal is None:
            try:
                accepted.append(await ulak.enqueue("mail.wait", "x" * size))
            except Unavailable as error:
                refusal = error
        assert "disk is full" in str(refusal)
        assert refusal.outcome == "no"
    return accepted


async def test_on_a_full_disk_new_work_is_refused_and_results_wait_for_space(ulak, recorder):
    recorder.release = asyncio.Event()
    async with ulak:
        running = await ulak.enqueue_many([NewJob("mail.send", "y" * 3000) for _ in range(20)])
        while recorder.at_once < 20:
            await asyncio.sleep(0)
        await ulak.write(limit_pages, 20)
        accepted = await fill_disk(ulak)
        recorder.release.set()
        settler = ulak.loops.worker._settler
        while not settler.trouble:  # the results do not fit
            await asyncio.sleep(0)
        assert [(await ulak.jobs.get(job)).status for job in running] == ["running"] * 20
        ulak.store._writer._session._connection.execute("PRAGMA max_page_count = 100000")
        while settler.trouble:  # tried again by itself, once a second
            ulak.clock.advance(1)
            await asyncio.sleep(0.001)
        await drain(ulak)
        assert {(await ulak.jobs.get(job)).status for job in running} == {"done"}
        assert {(await ulak.jobs.get(job)).status for job in accepted} == {"ready"}
        assert len(recorder.jobs) == 20  # nothing was done twice
        assert await ulak.enqueue("mail.send") > max(accepted)
    check = sqlite3.connect(ulak.settings.store.removeprefix("sqlite:///"))
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


async def test_what_shares_a_commit_with_a_unit_that_fills_the_disk_is_told_the_truth(ulak):
    """The database rolls the whole group back by itself; whoever was told yes is there, whoever was told no is not."""
    async with ulak:
        await ulak.write(limit_pages, 30)
        sizes = [100, 400_000, 100, 100, 300_000, 100] * 5
        answers = await asyncio.gather(
            *(ulak.enqueue("mail.wait", "x" * size) for size in sizes), return_exceptions=True
        )
        accepted = {answer for answer in answers if isinstance(answer, int)}
        refused = [answer for answer in answers if not isinstance(answer, int)]
        assert refused
        assert all(isinstance(answer, Unavailable) and answer.outcome == "no" for answer in refused)
        present = {record.id for record in await ulak.jobs.list(kind="mail.wait", limit=1000)}
        assert present == accepted
        assert ulak.store.capacity.free("mail.wait") == ulak.settings.spine.capacity - len(accepted)


async def test_the_ballast_is_given_up_when_a_write_fails_and_short_space_closes_the_door(
    sqlite_address, clock, monkeypatch
):
    ulak = build(sqlite_address, clock, work=False, spine={"ballast_mb": 1, "min_free_mb": 1})
    async with ulak:
        ballast = ulak.store.path.with_name("ulak.db.ballast")
        assert ballast.stat().st_size == 1024 * 1024
        ulak.store._writer.failures += 1
        await ulak.store.maintain()
        assert not ballast.exists()
        monkeypatch.setattr(
            "ulak.stores.sqlite.ballast.shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})()
        )
        await ulak.store.maintain()
        with pytest.raises(Unavailable, match=r"refused: only 0 MB are free.*min_free_mb"):
            await ulak.enqueue("mail.send")
        monkeypatch.undo()
        await ulak.store.maintain()
        assert await ulak.enqueue("mail.send")


async def test_short_space_closes_the_door_from_the_first_moment(sqlite_address, clock, monkeypatch):
    monkeypatch.setattr("ulak.stores.sqlite.ballast.shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    async with build(sqlite_address, clock, work=False, spine={"min_free_mb": 1}) as ulak:
        with pytest.raises(Unavailable, match=r"refused: only 0 MB are free.*min_free_mb"):
            await ulak.enqueue("mail.send")


async def test_after_a_failed_sync_nobody_is_told_yes_or_no_and_a_restart_recovers(sqlite_address, clock, recorder):
    async with build(sqlite_address, clock, work=False) as ulak:
        before = await ulak.enqueue("mail.wait", "before")
        plan_commits(ulak, "fsync")
        answers = await asyncio.gather(*(ulak.enqueue("mail.wait", n) for n in range(5)), return_exceptions=True)
        assert all(isinstance(answer, Unavailable) for answer in answers)
        assert {answer.outcome for answer in answers} == {"unknown"}
        await ulak.loops.failed.wait()
        assert "sync to disk failed" in str(ulak.loops.failure)
        with pytest.raises(Unavailable):
            await ulak.enqueue("mail.wait", "after")
    again = build(sqlite_address, clock)
    recorder.on(again, "mail.wait")
    async with again:
        await drain(again)
        assert (await again.jobs.get(before)).status == "done"
        assert await again.enqueue("mail.wait", "new") > before
    assert recorder.payloads[0] == "before"


@pytest.mark.parametrize("fate", ["done", "lost"])
async def test_a_commit_whose_reply_is_lost_is_looked_up_and_happens_exactly_once(ulak, recorder, fate):
    async with ulak:
        await drain(ulak)
        for number in range(10):
            plan_commits(ulak, fate)
            await ulak.enqueue("mail.send", number)
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.send"] == {"accepted": 10, "done": 10}
        assert ulak.store.capacity.free("mail.send") == 1000
        sequence = [event.seq for event in await ulak.jobs.events()]
        assert sequence == list(range(1, len(sequence) + 1))
    assert recorder.payloads == list(range(10))


@pytest.mark.parametrize("fate", ["done", "lost"])
async def test_a_users_unit_without_events_is_not_run_twice_when_the_reply_is_lost(ulak, fate):
    def make_table(tx):
        tx._connection.execute("CREATE TABLE IF NOT EXISTS mine (n)")

    def insert(tx):
        tx._connection.execute("INSERT INTO mine VALUES (1)")

    def count(tx):
        return tx._connection.execute("SELECT count(*) FROM mine").fetchone()[0]

    async with ulak:
        await ulak.write(make_table)
        await drain(ulak)
        for expected in range(1, 6):
            plan_commits(ulak, fate)
            await ulak.write(insert)
            assert await ulak.store.read(count) == expected


async def test_when_the_lost_reply_cannot_be_looked_up_the_answer_is_unknown(sqlite_address, clock):
    async with build(sqlite_address, clock, work=False) as ulak:  # a worker's claim might take the planned commit
        plan_commits(ulak, "done")

        def refuse():
            raise sqlite3.OperationalError("unable to open database file")

        ulak.store._writer._session._connect = refuse
        with pytest.raises(Unavailable) as failure:
            await ulak.enqueue("mail.send", 1)
        assert failure.value.outcome == "unknown"
        await ulak.loops.failed.wait()


async def test_a_claim_whose_reply_is_lost_runs_its_jobs_once(ulak, recorder):
    async with ulak:
        for fate in ("done", "lost") * 10:
            await ulak.enqueue("mail.send", fate)
            plan_commits(ulak, fate, fate)
            await drain(ulak)
        await advance(ulak, 1)
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 20
    assert len(recorder.jobs) == 20
