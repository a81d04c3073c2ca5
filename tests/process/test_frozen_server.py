"""PostgreSQL that is frozen under load, as a whole or one backend of it: it neither answers nor hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.flow.conftest import build
from tests.flow.stall import writers_of
from tests.postgres_server import fresh_database, server
from ulak import Unavailable
from ulak.spine import store as seam
from ulak.stores.writer import read_pool

pytestmark = pytest.mark.postgres

PRODUCERS = 20
PATIENCE_SECONDS = 10  # a connection that is being made takes up to 5 s to fail
BRIEF = {"stop_grace_seconds": 0.1, "stop_cancel_seconds": 0.1}


@pytest.fixture
def database():
    with fresh_database() as found:
        yield found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(seam, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(seam, "LAST_SECONDS", 0.3)


def server_processes() -> list[int]:
    """The postmaster, which is frozen first and forks no more, and its children."""
    postmaster = int((Path(server()._server.pgdata) / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *map(int, children.split())]


def backend_of(ulak) -> list[int]:
    """The one on which this Ulak settles and claims."""
    return [writers_of(ulak)[0]._session._backend[0]]


@contextlib.contextmanager
def frozen(pids):
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def threads_of(ulak) -> list[threading.Thread]:
    store = ulak.store
    return [owner._thread for owner in (*writers_of(ulak), store._notifier, store._relay)]


class Load:
    """Producers that press on, and what was accepted, refused or left unknown, and ran."""

    def __init__(self, ulak):
        self.ulak = ulak
        self.accepted: list[int] = []
        self.outcomes: list[str] = []
        self.ran: Counter[int] = Counter()
        self.uncertain: set[int] = set()
        self._goes_on = True
        self.take(ulak)

    def take(self, ulak):
        @ulak.handles("mail.send", concurrency=50)
        async def send(job):
            self.ran[job.id] += 1
            if job.crashes:
                self.uncertain.add(job.id)

    async def produce(self):
        while self._goes_on:
            try:
                self.accepted.append(await self.ulak.enqueue("mail.send"))
            except Unavailable as error:
                self.outcomes.append(error.outcome)
                return

    @contextlib.asynccontextmanager
    async def pressing(self):
        producers = [asyncio.create_task(self.produce()) for _ in range(PRODUCERS)]
        while len(self.accepted) < 200:
            await asyncio.sleep(0.005)
        yield
        self._goes_on = False
        await asyncio.gather(*producers)

    async def done(self, ulak):
        """Until nothing is left to do."""
        while any(name != "oldest_at" for states in (await ulak.jobs.counts()).values() for name in states):
            await asyncio.sleep(0.01)

    def check(self):
        assert set(self.accepted) <= set(self.ran)
        assert {job for job, times in self.ran.items() if times > 1} <= self.uncertain


async def reads(ulak):
    """Until a read is answered."""
    while True:
        with contextlib.suppress(Unavailable):
            assert await ulak.jobs.counts() == {}
            return


async def stalled(ulak):
    while seam.answers(ulak.store):
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("which", [lambda _: server_processes(), backend_of], ids=["the server", "one backend"])
async def test_what_was_accepted_runs_once_when_it_goes_on(database, which):
    async with build(database, None) as ulak:
        pass  # the schema and its plans are there
    ulak = build(database, None)
    load = Load(ulak)
    async with ulak:
        async with load.pressing():
            with frozen(which(ulak)):
                await stalled(ulak)
            while not seam.answers(ulak.store):
                await asyncio.sleep(0.005)
        await load.done(ulak)
        tally = (await ulak.jobs.tally())["mail.send"]
    load.check()
    assert load.outcomes == []
    assert set(load.ran.values()) == {1}
    assert tally["accepted"] == tally["done"] == len(load.accepted)


async def test_who_reads_is_told_and_reads_again_when_it_goes_on(database, monkeypatch):
    async with build(database, None, work=False) as ulak:
        monkeypatch.setattr(read_pool, "ANSWER_SECONDS", 0.3)
        with frozen(server_processes()), pytest.raises(Unavailable, match="has not answered"):
            await ulak.jobs.counts()
        await reads(ulak)


async def test_a_reader_whose_backend_is_frozen_goes_on_with_a_new_one(database, monkeypatch):
    async with build(database, None, work=False) as ulak:
        all_there = threading.Barrier(read_pool.THREADS)
        await asyncio.gather(*(ulak.store.read(lambda _: all_there.wait(10)) for _ in range(read_pool.THREADS)))
        backends = [connection.info.backend_pid for connection in ulak.store._reader._idle]
        assert len(backends) == read_pool.THREADS
        monkeypatch.setattr(read_pool, "ANSWER_SECONDS", 0.3)
        with frozen(backends):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await reads(ulak)


@pytest.mark.parametrize("which", [lambda _: server_processes(), backend_of], ids=["the server", "one backend"])
async def test_a_stop_keeps_its_limit_and_no_accepted_job_is_lost_or_silently_run_twice(database, which):
    ulak = build(database, None, worker=BRIEF, spine={"lease_seconds": 1})
    load = Load(ulak)
    await ulak.open()
    async with load.pressing():
        with frozen(which(ulak)):
            await stalled(ulak)
            threads = threads_of(ulak)
            report = await ulak.close()
            assert report.stuck
            for thread in threads:  # the server is still frozen: nobody waits for it any more
                await asyncio.to_thread(thread.join, PATIENCE_SECONDS)
            assert not any(thread.is_alive() for thread in threads)
    assert set(load.outcomes) <= {"unknown", "no"}
    again = build(database, None, spine={"lease_seconds": 1})
    load.take(again)
    async with again:
        await load.done(again)
    load.check()
