"""`ulak workers`, `timers`, `cron`, and looking for jobs by key and time."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.processes import command, server
from ulak import NotFound, Ulak

APP = 'from ulak import Ulak\nulak = Ulak()\nulak.cron("nightly", "0 3 * * *", "report.make")\n'


async def fill():
    async with Ulak("sqlite:///ulak.db", work=False) as ulak:
        later = await ulak.enqueue("a", delay_seconds=3600, key="ayse")
        return str(later), str(await ulak.enqueue("b"))


def test_timers_are_listed_and_say_what_they_are(ulak):
    later, _ = asyncio.run(fill())
    assert [one["id"] for one in ulak("timers", "--json")["items"]] == [later]
    assert later in ulak("timers")


def test_jobs_are_found_by_key_and_time(ulak):
    later, now = asyncio.run(fill())
    assert [one["id"] for one in ulak("jobs", "list", "--key", "ayse", "--json")["jobs"]] == [later]
    assert ulak("jobs", "list", "--after", "2100-01-01T00:00:00Z", "--json")["jobs"] == []
    found = ulak("jobs", "list", "--after", "2020-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z", "--json")
    assert {one["id"] for one in found["jobs"]} == {later, now}


def test_cron_entries_are_listed_and_run_now_beside_a_server(folder, ulak):
    (folder / "shop.py").write_text(APP)
    with server(folder, "--app", "shop:ulak"):
        [entry] = [one for one in ulak("cron", "list", "--json")["items"] if one["name"] == "nightly"]
        assert entry["kind"] == "report.make"
        made = ulak("cron", "run", "nightly", "--json")["id"]
        assert ulak("jobs", "show", made, "--json")["kind"] == "report.make"
        assert "this process" in command(folder, "workers").stdout
        with pytest.raises(NotFound, match="no cron entry"):
            ulak("cron", "run", "weekly")
