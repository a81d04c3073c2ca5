"""`ulak serve` and `ulak worker` as real processes: started, asked by commands beside them, stopped by signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import urllib.error
import urllib.request

import pytest

from tests.cli.processes import command, running, server
from ulak.errors import Conflict, Error, Unavailable

pytestmark = pytest.mark.slow

APP = """
import asyncio
from ulak import Ulak, Permanent
ulak = Ulak()

@ulak.handles("quick")
async def quick(job):
    print("ran", job.id, flush=True)

@ulak.handles("slow")
async def slow(job):
    await asyncio.sleep(600)

@ulak.handles("doomed")
async def doomed(job):
    raise Permanent("no")

def make(settings):
    return Ulak(settings=settings)
"""


@pytest.fixture(autouse=True)
def shop(folder):
    (folder / "shop.py").write_text(APP)


def post(process, path, body):
    request = urllib.request.Request(
        process.address + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def get(process, path):
    with urllib.request.urlopen(process.address + path, timeout=30) as answer:
        return answer.read().decode()


def follow(process, identifier, status):
    """Poll the API, which answers at once; the job's worker is another process."""
    return any(json.loads(get(process, f"/api/jobs/{identifier}"))["status"] == status for _ in range(2000))


def test_commands_work_beside_a_running_server(folder, ulak):
    with server(folder, "--app", "shop:ulak") as process:
        identifier = post(process, "/api/jobs", {"kind": "doomed", "payload": {"to": "ayse@example.com"}})["id"]
        assert follow(process, identifier, "dead")
        door = folder / "ulak.db.server"
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert [one["id"] for one in ulak("dead", "list", "--json")["dead"]] == [identifier]
        assert "1 went back" in ulak("dead", "redrive", identifier)
        assert follow(process, identifier, "dead")
        ulak("db", "backup", "copy.db")
        connection = sqlite3.connect(folder / "copy.db")
        assert connection.execute("SELECT count(*) FROM dead").fetchone() == (1,)
        connection.close()
        with pytest.raises(Conflict, match=f"pid {process.pid}"):
            ulak("db", "restore", "copy.db", "--replace")
        alone = command(folder, "jobs", "list", "--json")  # as a process of its own: nothing but JSON on its output
        assert json.loads(alone.stdout)["jobs"][0]["id"] == identifier
        assert process.stop() == 0
    assert not door.exists()
    assert ulak("jobs", "list", "--json")["jobs"][0]["id"] == identifier


def test_a_holder_that_answers_no_http_is_named(folder):
    with running(folder, "worker", "--app", "shop:ulak", until="Ulak works") as process:
        refused = command(folder, "jobs", "list", check=False)
        assert refused.returncode == 1
        assert f"pid {process.pid}" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert process.stop() == 0


def test_a_holder_that_hangs_is_named(folder, ulak):
    with server(folder) as process:
        os.kill(process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match=f"process {process.pid} does not answer"):
                ulak("jobs", "list", "--set", "client.timeout_seconds=0.5")
        finally:
            os.kill(process.pid, signal.SIGCONT)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_work_keeps_its_limits_and_tells_what_was_cut(folder, ulak, sign):
    limits = {"ULAK_WORKER__STOP_GRACE_SECONDS": "0.2", "ULAK_WORKER__STOP_CANCEL_SECONDS": "5"}
    with server(folder, "--app", "shop:ulak", **limits) as process:
        identifier = post(process, "/api/jobs", {"kind": "slow"})["id"]
        assert follow(process, identifier, "running")
        assert process.stop(sign) == 0
        assert "cancelled=1" in process.text
    job = ulak("jobs", "show", identifier, "--json")
    assert (job["status"], job["crashes"]) in {("ready", 0), ("deferred", 0)}


def test_a_second_signal_ends_it_at_once(folder):
    with server(folder, "--app", "shop:ulak") as process:
        identifier = post(process, "/api/jobs", {"kind": "slow"})["id"]
        assert follow(process, identifier, "running")
        os.kill(process.pid, signal.SIGTERM)
        assert stopping(process)
        assert process.stop() == -signal.SIGTERM


def stopping(process):
    """Ask until it says that it stops."""
    for _ in range(2000):
        try:
            get(process, "/readyz")
        except urllib.error.HTTPError as error:
            return error.code == 503
    return False


def test_a_taken_port_is_told_before_anything_is_opened(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = command(folder, "serve", "--set", f"http.port={port}", check=False)
    assert refused.returncode == 1
    assert f"127.0.0.1:{port} is taken" in refused.stderr
    assert not (folder / "ulak.db").exists()


def test_beyond_loopback_it_starts_only_with_a_key(folder, ulak):
    options = ("serve", "--set", "http.host=0.0.0.0", "--set", "http.port=0")
    refused = command(folder, *options, check=False)
    assert refused.returncode == 1
    assert "ulak keys create" in refused.stderr
    token = ulak("keys", "create", "ops", "--scope", "admin").split()[-1]
    with running(folder, *options, until="Ulak serves") as process:
        address = process.greeting.split()[2]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/api/jobs", timeout=30)
        assert ulak("jobs", "list", "--json")["jobs"] == []  # by the key in the door file
        remote = ("jobs", "list", "--json", "--set", f"client.url={address}", "--set", "store=memory:")
        with pytest.raises(Error, match="needs an API key"):
            ulak(*remote)
        assert ulak(*remote, ULAK_CLIENT__KEY=token)["jobs"] == []
        assert process.stop() == 0
    assert token not in process.text


def test_a_lost_store_ends_the_process_with_a_reason(folder):
    (folder / "lossy.py").write_text(
        "from ulak import Ulak\nulak = Ulak()\n"
        "@ulak.handles('lose')\nasync def lose(job): ulak.loops.lost(RuntimeError('a sync to disk failed'))\n"
    )
    with server(folder, "--app", "lossy:ulak", ULAK_WORKER__STOP_GRACE_SECONDS="0.2") as process:
        post(process, "/api/jobs", {"kind": "lose"})
        assert process.end() == 1
        assert "the store is lost: a sync to disk failed" in process.text
        assert "Traceback" not in process.text


def test_the_greeting_fits_a_terminal_and_its_line_works(folder):
    with server(folder) as process:
        lines = process.text.splitlines()
        greeting = lines[next(number for number, line in enumerate(lines) if "Ulak serves" in line) :]
        assert max(map(len, greeting)) <= 80
        shown = "\n".join(greeting).partition("Try:\n")[2].partition("\nIs it well?")[0]
        address, _, body = shown.partition(" -d ")
        assert address.split()[:2] == ["curl", "-s"]
        answer = post(process, address.split()[-1].removeprefix(process.address), json.loads(body.strip("'")))
        assert answer["status"] == "ACCEPTED"


def test_the_greeting_names_no_console_that_is_switched_off(folder):
    with server(folder, ULAK_CONSOLE__ENABLED="false") as process:
        assert "/docs" in process.text
        assert "console" not in process.text.partition("Ulak serves")[2]


def test_the_demo_greets_and_shows_commands_that_work(folder):
    with server(folder, "--demo") as process:
        identifier = post(process, "/api/jobs", {"kind": "demo.greet", "payload": {"name": "Ayşe"}})["id"]
        assert follow(process, identifier, "done")
        assert "paused" in command(folder, "kinds", "pause", "notify.email").stdout
        assert "runs" in command(folder, "kinds", "resume", "notify.email").stdout
        assert command(folder, "status").returncode == 0
        assert process.stop() == 0
    assert "everything in it is simulated" in process.text
    assert f"{process.address}/console/" in process.text
    assert f"kill -9 {process.pid}" in process.text
    greeting = process.text.partition("Ulak serves")[2].partition("demo crash")[0]  # what is logged may be longer
    assert max(map(len, greeting.splitlines())) <= 80
