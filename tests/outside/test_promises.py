"""What the README promises of jobs, tried from outside: real servers, killed in the middle, on both stores."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from tests.outside.receivers import Receiver
from tests.outside.served import served

pytestmark = pytest.mark.slow

SMS = {"notificationType": "SMS", "recipient": "+905551112233"}

# `pause` waits where the test has put a gate, as work that takes long; `book` refuses an account that can never be.
APP = """
import os, time
from pathlib import Path
from ulak import Permanent, Ulak

def write(line):
    with open("ledger", "a") as file:
        file.write(line + "\\n")

def make(settings):
    ulak = Ulak(settings=settings)

    @ulak.handles("pause", lane="thread")
    def pause(job):
        write(f"{job.attempt} {job.uncertain}")
        while Path("gate").exists():
            time.sleep(0.01)

    @ulak.handles("note", lane="thread")
    def note(job):
        write(f"{job.key} {job.payload}")
        time.sleep(0.01)

    @ulak.handles("timed")
    async def timed(job):
        write(f"{time.time() * 1000 - job.payload:.3f}")

    @ulak.handles("book")
    async def book(job):
        if job.payload["account"] == "wrong":
            raise Permanent("no such account")
        return job.payload["account"]

    return ulak
"""


@pytest.fixture
def serve(store, tmp_path):
    """A server with handlers; a second call is the same installation, started again."""
    (tmp_path / "town.py").write_text(APP)
    # A dead process's lease has to end before others take over; only where there may be others.
    lease = {"spine.lease_seconds": 2} if store.startswith("postgresql") else {}
    return lambda: served(store, tmp_path, "town:make", **lease)


def ledger(folder):
    file = folder / "ledger"
    return file.read_text().splitlines() if file.exists() else []


async def until(found, seconds=60):
    async with asyncio.timeout(seconds):
        while not (value := found()):
            await asyncio.sleep(0.02)
    return value


async def enqueued(server, kind, payload=None, **fields):
    status, answer = await server.ask("POST", "/api/jobs", {"kind": kind, "payload": payload, **fields})
    assert status == 202, answer
    return answer["id"]


async def ended(server, identifier, seconds=60):
    async with asyncio.timeout(seconds):
        while (job := (await server.get(f"/api/jobs/{identifier}"))[1])["settledAt"] is None:
            await asyncio.sleep(0.05)
    return job


async def killed(server):
    server.process.kill()
    await asyncio.to_thread(server.process.wait, 60)


async def test_a_process_that_dies_gives_its_work_back_and_its_attempt_is_called_uncertain(serve, tmp_path):
    (tmp_path / "gate").touch()
    async with serve() as server:
        job = await enqueued(server, "pause")
        await until(lambda: ledger(tmp_path) == ["1 False"])
        await killed(server)
    (tmp_path / "gate").unlink()
    async with serve() as server:
        found = await ended(server, job)
    assert ledger(tmp_path) == ["1 False", "2 True"]  # the handler is told, too
    assert found["status"] == "done"
    assert [entry["word"] for entry in found["timeline"]].count("uncertain") == 1


async def test_jobs_of_a_key_run_in_order_whoever_dies(serve, tmp_path):
    async with serve() as server:
        for number in range(40):
            for key in ("ada", "bora"):
                await enqueued(server, "note", number, key=key)
        await until(lambda: len(ledger(tmp_path)) > 8)
        await killed(server)
    async with serve():
        await until(lambda: {"ada 39", "bora 39"} <= set(ledger(tmp_path)))
    for key in ("ada", "bora"):
        ran = [int(line.split()[1]) for line in ledger(tmp_path) if line.startswith(key)]
        assert ran == sorted(ran)
        assert sorted(set(ran)) == list(range(40))
        assert len(ran) <= 41  # the one that ran at the kill, again


async def test_a_timer_is_kept_to_the_millisecond_and_never_early(serve, tmp_path):
    async with serve() as server:
        first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
        instants = [first + timedelta(milliseconds=7 * number) for number in range(50)]
        for instant in reversed(instants):
            millis = round(instant.timestamp() * 1000)
            job = await enqueued(server, "timed", millis, dueAt=instant.isoformat())
            shown = (await server.get(f"/api/jobs/{job}"))[1]["dueAt"]
            assert datetime.fromisoformat(shown) == instant
        await until(lambda: len(ledger(tmp_path)) == len(instants))
    assert min(map(float, ledger(tmp_path))) >= 0


async def test_a_dead_letter_is_edited_and_sent_again(serve):
    async with serve() as server:
        job = await enqueued(server, "book", {"account": "wrong"})
        assert (await ended(server, job))["status"] == "dead"
        assert (await server.ask("PUT", f"/api/dead/{job}/payload", {"account": "right"}))[0] == 204
        status, answer = await server.ask("POST", "/api/dead/redrive", {"ids": [job]})
        assert (status, answer["redriven"]) == (200, 1)
        found = await ended(server, job)
    assert (found["status"], found["detail"]) == ("done", "right")


async def test_events_come_in_commit_order_to_whoever_follows_and_whoever_reads_later(serve):
    async with serve() as server, aiohttp.ClientSession() as session:
        async with session.get(f"{server.address}/api/events/stream?after=0") as stream:
            jobs = await asyncio.gather(*(enqueued(server, "book", {"account": "right"}) for _ in range(200)))
            followed = await heard(stream, set(jobs))
        read = await pages(server)
    seqs = [event["seq"] for event in read]
    assert seqs == sorted(set(seqs))
    assert followed == read[: len(followed)]  # nothing was put in between afterwards
    for job in jobs:
        names = [event["name"] for event in followed if event["job"] == job]
        assert names == sorted(names, key=["accepted", "started", "done"].index)
        assert names[-1] == "done"


async def heard(stream, jobs):
    """The events of a stream until all these jobs are done."""
    events, left = [], set(jobs)
    async with asyncio.timeout(60):
        async for line in stream.content:
            if line.startswith(b"data:"):
                found = json.loads(line[5:])
                events += found if isinstance(found, list) else [found]
                left -= {event["job"] for event in events[-1:] if event["name"] == "done"}
            if not left:
                return events
    raise AssertionError("the stream ended")


async def pages(server):
    events, after = [], 0
    while page := (await server.get(f"/api/events?after={after}&limit=1000"))[1]["events"]:
        events, after = events + page, page[-1]["seq"]
    return events


HOSTS = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.0.0.1", "192.168.1.1", "169.254.169.254", "2130706433"]


async def test_webhooks_stay_out_of_private_networks(tmp_path):
    async with (
        Receiver().listening() as receiver,
        served(f"sqlite:///{tmp_path}/ulak.db", tmp_path, **{"channels.webhook.allow": ""}) as server,
    ):
        port = receiver.url.rpartition(":")[2]
        for host in HOSTS:
            status, _, answer = await server.post(notificationType="WEBHOOK", recipient=f"http://{host}:{port}")
            if status != 400:
                assert await server.status_of(answer["id"], "FAILED", "DELIVERED") == "FAILED", host
        assert receiver.attempts == {}


async def test_it_is_one_process_and_one_file(tmp_path):
    async with served("sqlite:///ulak.db", tmp_path) as server:
        _, _, answer = await server.post(**SMS)
        await server.status_of(answer["id"], "DELIVERED")
        pid = server.process.pid
        children = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
        assert "".join(children).split() == []
        files = {file.name for file in tmp_path.iterdir()} - {"serve.log"}
    assert {name.partition(".")[0] for name in files} == {"ulak"}, files


async def test_an_answer_follows_a_sync_of_the_disk(tmp_path):
    """The tracer stops the server at each sync until it has written it down, so no answer can overtake its line."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not here; it shows the syncs: apt-get install strace")
    log = tmp_path / "syncs"
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()  # accepted, and nothing else happens to it
    async with served(f"sqlite:///{tmp_path}/ulak.db", tmp_path) as server:
        words = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(log), "-p", str(server.process.pid)]
        tracer = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            assert tracer.stderr is not None
            told = await asyncio.to_thread(tracer.stderr.readline)
            if "attached" not in told:
                pytest.skip(f"strace may not attach here: {told.strip()}")
            for _ in range(20):
                before = log.read_text().count("= 0\n")
                status, _, _ = await server.post(**SMS, sendAt=tomorrow)
                assert (status, log.read_text().count("= 0\n") > before) == (202, True)
        finally:
            tracer.terminate()
            tracer.communicate(timeout=60)
