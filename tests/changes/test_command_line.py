"""`ulak changes` as a person uses it: exit codes, what is printed, with a server and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.changes.lists import invoice, simple, write_lists
from ulak import Ulak
from ulak.settings import load


@pytest.fixture
def ulak(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ULAK_", "Gib"))}
    env |= {"ULAK_STORE": f"sqlite:///{tmp_path}/ulak.db", "ULAK_CHANGES__FOLDER": str(tmp_path / "changes")}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ulak", "changes", *words]
        given = {"env": env | more, "cwd": tmp_path, "timeout": 120}
        return subprocess.run(command, capture_output=True, text=True, check=False, **given)

    return run


def files(tmp_path, numbers):
    paths = write_lists(tmp_path / "lists", *simple(numbers))
    return "--pk", str(paths["PK"]), "--gb", str(paths["GB"])


@pytest.mark.slow
def test_a_sync_without_a_server(ulak, tmp_path):
    made = ulak("generate", "made", "--users", "50")
    assert made.returncode == 0, made.stderr
    lists = ("--pk", "made/newUserPkListxml.zip", "--gb", "made/newUserGbListxml.zip")
    first = ulak("sync", "gib", *lists, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["feeds"]["einvoice"]["added"] == 50
    refused = ulak("sync", "gib", "--pk", lists[3], "--gb", lists[1])
    assert (refused.returncode, "swapped" in refused.stdout) == (1, True)
    partial = ulak("sync", "gib", *files(tmp_path, range(1, 30)))
    assert partial.returncode == 3, partial.stdout
    assert "withheld" in partial.stdout
    listed = json.loads(ulak("list", "gib", "--json").stdout)["items"]
    assert [one["verdict"] for one in listed] == ["withheld", "refused", "published"]
    shown = ulak("preview", "gib", listed[0]["syncId"])
    assert "removed" in shown.stdout
    assert "einvoice" in ulak("status").stdout
    assert list((tmp_path / "changes" / "gib" / "inbox").iterdir()) == []


@pytest.mark.slow
async def test_without_a_server_it_works_on_its_registry_only(ulak, tmp_path):
    (tmp_path / "shops.csv").write_text("id,name\n1,A\n")
    (tmp_path / "ulak.toml").write_text(
        '[changes.gib]\npk_url = "file:///nowhere"\ngb_url = "file:///nowhere"\n[[changes.registry]]\nname = "shops"\n'
        f'format = "csv"\nurl = "file://{tmp_path}/shops.csv"\nkey = "id"\nfields = {{ title = "name" }}\n'
    )
    store = {"store": f"sqlite:///{tmp_path}/ulak.db", "changes.folder": str(tmp_path / "changes")}
    settings = load(tmp_path / "ulak.toml", env={}, overrides=store).settings
    async with Ulak(settings=settings, work=False) as left:
        shops, gib = await left.changes.start("shops"), await left.changes.start("gib")
    synced = ulak("sync", "gib", *files(tmp_path, range(1, 30)), "--json")
    assert synced.returncode == 0, synced.stderr
    assert json.loads(synced.stdout)["verdict"] == "published"
    async with Ulak(settings=settings, work=False) as after:
        assert (await after.changes.get_sync("shops", shops.sync_id)).status == "running"
        assert (await after.changes.get_sync("gib", gib.sync_id)).status == "failed"  # its source is not to be reached


@pytest.mark.slow
async def test_with_no_wait_a_sync_is_begun_and_left_to_the_next_process_that_works(ulak, tmp_path):
    begun = ulak("sync", "gib", *files(tmp_path, range(1, 5)), "--no-wait", "--json")
    assert begun.returncode == 0, begun.stderr
    told = json.loads(begun.stdout)
    assert (set(told), told["status"]) == ({"syncId", "status"}, "running")
    again = json.loads(ulak("sync", "gib", "--no-wait", "--json").stdout)
    assert again == {"syncId": told["syncId"], "status": "partial"}
    store = {"store": f"sqlite:///{tmp_path}/ulak.db", "changes.folder": str(tmp_path / "changes")}
    async with Ulak(settings=load(env={}, overrides=store).settings) as working:
        assert (await working.changes.wait("gib", told["syncId"])).feeds["einvoice"].added == 4


@pytest.mark.slow
def test_progress_is_shown_on_standard_error_and_only_to_a_person(ulak, tmp_path):
    lists = (*files(tmp_path, range(1, 5)), "--json")
    person = ulak("sync", "gib", *lists, FORCE_COLOR="1", TERM="xterm")  # as if standard error were a terminal
    assert "syncing gib" in person.stderr
    assert json.loads(person.stdout)["verdict"] == "published"
    assert "syncing" not in ulak("sync", "gib", *lists).stderr


@pytest.mark.slow
def test_a_quarantine_is_exit_code_4(ulak, tmp_path):
    assert ulak("sync", "gib", *files(tmp_path, range(1, 121))).returncode == 0
    pk, _ = simple(range(1, 121))
    paths = write_lists(tmp_path / "lists", pk, [invoice("9999999999", "alone")])
    assert ulak("sync", "gib", "--pk", str(paths["PK"]), "--gb", str(paths["GB"])).returncode == 4


def test_mistakes_are_told(ulak, tmp_path):
    both = ulak("sync", "gib", *files(tmp_path, range(1, 3))[:2])
    assert (both.returncode, "give both" in both.stderr) == (1, True)
    assert ulak("follow", "http://localhost/nothing", "--into", "copy.db").returncode == 1
