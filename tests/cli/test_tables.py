"""Tables for people: ids stay whole, times are local, an empty one says what fills it, and the store is named."""

from __future__ import annotations

import asyncio
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.processes import command, running, server
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.cli import app
from ulak.cli import command as whole_command
from ulak.cli.table import cell, fit, local, table

ID = "0ca249d2-5880-8000-804c-a4c4e820194f"
ROW = {
    "id": ID,
    "kind": "notify.webhook",
    "status": "retrying",
    "cause": "x" * 300,
    "createdAt": "2026-11-17T23:49:09.090000Z",
}


def drawn(monkeypatch, capsys, width, *columns):
    monkeypatch.setattr(
        "ulak.cli.table.Console", lambda **_: Console(width=width, force_terminal=True, color_system=None)
    )
    table([ROW], *columns)()
    return capsys.readouterr()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_ids_stay_whole_and_lines_fit(monkeypatch, capsys, width):
    told = drawn(monkeypatch, capsys, width, "id", "kind", "status", "cause", "createdAt")
    assert ID in told.out
    assert max(len(line.rstrip()) for line in told.out.splitlines()) <= width
    assert "--json" in told.err


def test_a_wide_terminal_shows_every_column_and_no_hint(monkeypatch, capsys):
    told = drawn(monkeypatch, capsys, 200, "id", "kind", "status", "createdAt")
    assert "createdAt" in told.out
    assert told.err == ""


def test_a_long_text_leaves_room_for_what_comes_after_it():
    assert fit(("id", "cause", "at"), [["1", "x" * 900, "2026"]], 80) == [2, 40, 4]


def test_a_short_value_that_does_not_fit_goes_whole():
    instant = "2026-11-18 02:49:09 UTC"
    assert fit(("id", "at"), [["1" * 18, instant]], 42) == [18]
    assert fit(("id", "at"), [["1" * 18, instant]], 43) == [18, 23]
    assert fit(("id", "cause"), [["1" * 18, "x" * 90]], 80) == [18, 40]


def test_of_a_text_with_several_lines_a_row_has_the_first():
    assert cell("FAILED: boom\n--- traceback\nFile x") == "FAILED: boom …"
    assert (cell("one"), cell(None), cell({"a": 1})) == ("one", "-", '{"a":1}')


def test_times_are_in_the_zone_of_this_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Istanbul")
    time.tzset()
    try:
        assert local("2026-11-17T23:49:09.090000Z") == "2026-11-18 02:49:09 +03"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local("2026-11-17") == "2026-11-17"


def test_an_empty_list_says_what_fills_it(ulak):
    ulak("notify", "send", "IN_APP", "ayse", "Merhaba")
    assert ulak("dead", "list").startswith("No dead letters. A job is here when")
    assert ulak("breakers", "list").startswith("No breaker is open.")
    assert "ulak notify endpoints register" in ulak("notify", "endpoints", "list")
    assert "ulak keys create" in ulak("keys", "list")


async def make_store(name):
    async with Ulak(f"sqlite:///{name}"):
        pass


def test_who_reads_a_store_without_a_server_is_told_which_and_who_works_elsewhere(folder):
    (folder / "shop.py").write_text('from ulak import Ulak\nulak = Ulak("sqlite:///shop.db")\n')
    asyncio.run(make_store("ulak.db"))
    with running(folder, "worker", "--app", "shop:ulak", until="Ulak works") as worker:
        done = command(folder, "dead", "list")
        assert "(sqlite:///ulak.db; no server works on it." in done.stderr
        assert f"pid {worker.pid} works on shop.db: --set store=sqlite:///shop.db" in done.stderr
        stopped = command(folder, "status", check=False)
        assert stopped.stdout.startswith("Stopped: ")
        assert f"pid {worker.pid} works on shop.db" in stopped.stderr
        (folder / "ulak.db").unlink()
        missing = command(folder, "dead", "list", check=False)
        assert f"pid {worker.pid} works on shop.db" in missing.stderr


def test_beside_a_server_nothing_is_said_of_the_store(folder):
    with server(folder):
        assert command(folder, "dead", "list").stderr == ""


def test_a_notification_and_its_job_name_each_other(folder, ulak):
    identifier = ulak("notify", "send", "IN_APP", "ayse", "Merhaba").split()[0]
    notification = ulak("notify", "show", identifier, "--json")
    job = ulak("jobs", "show", notification["jobId"], "--json")
    assert job["uuid"] == identifier
    assert ulak("jobs", "show", identifier, "--json")["id"] == notification["jobId"]


def test_flags_have_no_type_in_the_help():
    shown = CliRunner()
    text = shown.invoke(app, ["dead", "list", "--help"]).output
    assert "--reveal" in text
    flags = [one for one in walk(whole_command()) if getattr(one, "is_flag", False)]
    assert flags
    assert {one.metavar for one in flags} == {""}


def walk(group):
    yield from group.params
    for one in getattr(group, "commands", {}).values():
        yield from walk(one)


@pytest.mark.postgres
def test_on_postgresql_a_command_does_not_claim_that_no_server_works(folder):
    with fresh_database() as store:
        done = command(folder, "dead", "list", "--set", f"store={store}")
    assert "; asked directly, not through a server)" in done.stderr
