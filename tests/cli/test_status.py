"""`ulak status`: the verdict first, from the server, from the store, and from a file that a worker holds."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from typer.testing import CliRunner

from tests.cli.processes import command, running, server
from ulak import Permanent, Ulak
from ulak.cli import app
from ulak.cli.verdict import MAX_DEAD, Observed, judge, screen
from ulak.errors import NotFound
from ulak.testing import drain

IDLE = {"ready": 0, "running": 0, "deferred": 0, "behind": 0, "suspect": 0}


def facts(**changed):
    return Observed(**({"place": "here", "is_running": True, "states": IDLE, "accounted": True} | changed))


async def fill(dead=0, waiting=0):
    made = Ulak("sqlite:///ulak.db")

    @made.handles("doomed")
    async def doomed(job):
        raise Permanent("no such mailbox")

    async with made:
        for _ in range(dead):
            await made.enqueue("doomed")
        await drain(made)
        for _ in range(waiting):
            await made.enqueue("unhandled")


def status(*words):
    result = CliRunner().invoke(app, ["status", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize(
    ("seen", "verdict", "code", "says"),
    [
        ({"done": 1200}, "well", 0, "Well: 1,200 jobs done, 0 waiting, none lost."),
        ({"dead": 1}, "attention", 0, "Works, but look: 1 dead letter (ulak dead list)."),
        ({"dead": MAX_DEAD + 1}, "attention", 0, "more than 100 dead letters"),
        ({"held": 2}, "attention", 0, "2 jobs held after a restore"),
        ({"breakers": ("a is open",), "dead": 1}, "attention", 0, "(and 1 more below)"),
        ({"reasons": ("notify.email is full",)}, "attention", 0, "notify.email is full"),
        ({"problem": "the disk is short"}, "ill", 1, "Not well: the disk is short."),
        ({"accounted": False}, "ill", 1, "not accounted for"),
        ({"is_running": False}, "stopped", 1, "nothing waits"),
        ({"is_running": False, "states": IDLE | {"ready": 1}}, "stopped", 1, "1 job waiting"),
        ({"is_running": False, "accounted": False}, "ill", 1, "not accounted for"),
    ],
)
def test_the_verdict_follows_from_the_facts(seen, verdict, code, says):
    judged = judge(facts(**seen))
    assert (judged.verdict, judged.exit_code) == (verdict, code)
    assert says in judged.sentence


def test_every_finding_has_a_line_below_the_verdict():
    seen = facts(dead=3, breakers=("a is open", "b is open"))
    lines = screen(seen, judge(seen))
    assert lines[0].startswith("Works, but look")
    assert [line for line in lines if "look " in line[:8]] == [
        "  look      3 dead letters (ulak dead list)",
        "  look      2 destinations closed off (ulak breakers list)",
    ]


def test_one_of_a_thing_is_not_many():
    seen = facts(dead=1, uncertain=1)
    assert "1 dead letter · 1 uncertain attempt" in "\n".join(screen(seen, judge(seen)))


def test_the_screen_fits_a_terminal_of_80_columns():
    busy = dict.fromkeys(IDLE, 99)
    seen = facts(states=busy, oldest_seconds=86_000, done=1_200_000, dead=99, uncertain=1_200, breakers=("a is open",),
                 simulated=("email", "sms", "push", "whatsapp", "slack"))  # fmt: skip
    lines = screen(seen, judge(seen))
    assert [line for line in lines[1:] if len(line) > 80] == []
    assert any(line.startswith("  oldest ") for line in lines)


def test_a_store_without_a_process_is_stopped_and_says_how_many_wait():
    asyncio.run(fill(waiting=2))
    result = status()
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == (
        "Stopped: no process works on this store, 2 jobs waiting. Start one: ulak serve"
    )
    assert "sqlite:///ulak.db" in result.output


def test_a_store_that_is_not_there_is_an_error():
    with pytest.raises(NotFound, match="no store at"):
        status()


def test_json_has_the_verdict_and_the_facts():
    asyncio.run(fill(dead=1))
    document = json.loads(status("--json").output)
    assert document["verdict"] == "stopped"
    assert document["findings"] == ["1 dead letter (ulak dead list)"]
    assert (document["dead"], document["accounted"], document["isRunning"]) == (1, True, False)


def test_a_running_server_is_asked(folder):
    asyncio.run(fill(dead=1))
    with server(folder) as process:
        done = command(folder, "status")
    assert done.stdout.startswith("Works, but look: 1 dead letter (ulak dead list).\n")
    assert f"{process.address}, process {process.pid}, on sqlite:///ulak.db" in done.stdout
    assert "  simulated email, sms, push, whatsapp, slack: nothing leaves the machine" in done.stdout.splitlines()
    (worker,) = [line for line in done.stdout.splitlines() if line.startswith("  worker ")]
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+, runs 0", worker)  # this machine's time, not ISO's


def test_beside_a_worker_without_http_the_file_is_read(folder):
    with running(folder, "worker", until="Ulak works") as worker:
        done = command(folder, "status")
    assert done.stdout.startswith("Well: 0 jobs done, 0 waiting, none lost.\n")
    assert f"pid {worker.pid}, which answers no HTTP" in done.stdout
