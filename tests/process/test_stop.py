"""SIGTERM under full load: the process ends within its limits, tells what it left, and loses nothing."""

from __future__ import annotations

import json
import signal
import sqlite3
import threading
import urllib.error
import urllib.request
from collections import Counter

import pytest

from tests.cli.processes import PATIENCE_SECONDS, running, server
from ulak import NewJob, Ulak

pytestmark = pytest.mark.slow

JOBS, LONG_ONES = 3000, 50
GRACE_SECONDS, CANCEL_SECONDS = 1.0, 1.0
LIMITS = {
    "ULAK_WORKER__STOP_GRACE_SECONDS": str(GRACE_SECONDS),
    "ULAK_WORKER__STOP_CANCEL_SECONDS": str(CANCEL_SECONDS),
    "ULAK_SPINE__BALLAST_MB": "0",
}
# The last results may take 5 s more, the rest is for a busy machine. What runs here would take an hour.
END_SECONDS = GRACE_SECONDS + CANCEL_SECONDS + 5 + 10
APP = """
import asyncio, sys, threading, time
from ulak import Backoff, Ulak
ulak = Ulak()

@ulak.handles("brief")
async def brief(job):
    await asyncio.sleep(0.01)

@ulak.handles("long")
async def long(job):
    print("long", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)

@ulak.handles("stubborn")
async def stubborn(job):
    print("stubborn", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@ulak.handles("blocking", lane="thread")
def blocking(job):
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(3600)

again = threading.Event()
SOON = Backoff(0.01, 1.0, 0.01)

def second(job):
    if job.attempt > 1:
        print("again", file=sys.stderr, flush=True)
        again.set()
    return job.attempt > 1

@ulak.handles("late", lane="thread", timeout_seconds=0.05, backoff=SOON)
def late(job):
    second(job) or time.sleep(3600)

@ulak.handles("detached", timeout_seconds=0.05, backoff=SOON)
async def detached(job):
    second(job) or await asyncio.to_thread(time.sleep, 3600)

@ulak.handles("lose")
async def lose(job):
    await asyncio.to_thread(again.wait)
    ulak.loops.lost(RuntimeError("a sync to disk failed"))
"""


@pytest.fixture(autouse=True)
def shop(tmp_path):
    (tmp_path / "shop.py").write_text(APP)


async def fill(folder, *kinds: str) -> None:
    async with Ulak(f"sqlite:///{folder}/ulak.db", work=False) as ulak:
        await ulak.enqueue_many([NewJob(kind) for kind in kinds])


def stores(folder) -> Counter[str]:
    """How many jobs each table of the store holds, and how many of the live ones are still leased."""
    connection = sqlite3.connect(folder / "ulak.db")
    try:
        found = Counter({name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
                         for name in ("job", "past", "dead")})  # fmt: skip
        found["leased"] = connection.execute("SELECT count(*) FROM job WHERE state = 2").fetchone()[0]
    finally:
        connection.close()
    return found


def terminate(process) -> int:
    """SIGTERM, and its end within the limits; what it said is in `process.text`."""
    process._process.send_signal(signal.SIGTERM)
    _, rest = process._process.communicate(timeout=END_SECONDS)
    process.said.append(rest)
    return process._process.returncode


async def test_a_worker_under_full_load_ends_within_its_limits_and_reports(tmp_path):
    await fill(tmp_path, *["long"] * LONG_ONES, *["brief"] * JOBS)
    with running(tmp_path, "worker", "--app", "shop:ulak", until="long", **LIMITS) as process:
        assert terminate(process) == 0
    kept = stores(tmp_path)
    assert "stopped" in process.text
    assert "left=0" in process.text
    assert (kept["leased"], kept["dead"]) == (0, 0)
    assert kept["job"] + kept["past"] == LONG_ONES + JOBS
    assert kept["job"] >= LONG_ONES


@pytest.mark.parametrize("kind", ["stubborn", "blocking"])
async def test_a_handler_that_can_not_be_stopped_does_not_hold_up_the_end(tmp_path, kind):
    await fill(tmp_path, kind)
    with running(tmp_path, "worker", "--app", "shop:ulak", until=kind, **LIMITS) as process:
        assert terminate(process) == 0
    assert stores(tmp_path)["job"] == 1


@pytest.mark.parametrize("kind", ["late", "detached"])
async def test_a_thread_whose_attempt_timed_out_earlier_does_not_hold_up_the_end(tmp_path, kind):
    await fill(tmp_path, kind)
    with running(tmp_path, "worker", "--app", "shop:ulak", until="again", **LIMITS) as process:
        assert terminate(process) == 0
    assert "cancelled=0" in process.text
    assert stores(tmp_path)["past"] == 1


@pytest.mark.parametrize("kind", ["late", "detached"])
@pytest.mark.parametrize("role", ["worker", "serve"])
async def test_a_thread_that_is_busy_does_not_hold_up_the_end_when_the_store_is_lost(tmp_path, role, kind):
    await fill(tmp_path, kind, "lose")
    with running(tmp_path, role, "--app", "shop:ulak", until="again", ULAK_HTTP__PORT="0", **LIMITS) as process:
        _, rest = process._process.communicate(timeout=END_SECONDS)
        assert process._process.returncode == 1
    assert rest.count("ulak: the store is lost: a sync to disk failed") == 1


class Producers:
    """Threads that post jobs until the server does not take any more; `ids` are those that it took."""

    def __init__(self, address: str, number: int) -> None:
        self._address = address
        self.ids: list[int] = []
        self._many = threading.Event()
        self._threads = [threading.Thread(target=self._post) for _ in range(number)]

    def _post(self) -> None:
        body = json.dumps({"kind": "brief"}).encode()
        request = urllib.request.Request(f"{self._address}/api/jobs", body, {"content-type": "application/json"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                    self.ids.append(json.load(answer)["id"])
            except (urllib.error.URLError, OSError):
                return
            if len(self.ids) >= 200:
                self._many.set()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        assert self._many.wait(PATIENCE_SECONDS)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)


async def test_a_server_under_full_load_ends_within_its_limits_and_keeps_all_that_it_took(tmp_path):
    await fill(tmp_path, *["long"] * LONG_ONES, *["brief"] * JOBS)
    with server(tmp_path, "--app", "shop:ulak", **LIMITS) as process:
        producers = Producers(process.address, 4)
        producers.start()
        assert terminate(process) == 0
        producers.join()
    kept = stores(tmp_path)
    assert (kept["leased"], kept["dead"]) == (0, 0)
    assert kept["job"] + kept["past"] >= LONG_ONES + JOBS + len(producers.ids)
    assert missing(tmp_path, producers.ids) == set()


def missing(folder, ids) -> set[int]:
    connection = sqlite3.connect(folder / "ulak.db")
    try:
        return {int(one) for one in ids} - {
            row[0] for row in connection.execute("SELECT id FROM job UNION ALL SELECT id FROM past")
        }
    finally:
        connection.close()
