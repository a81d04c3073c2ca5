"""`ulak dispatch` on a store without a server, and its simulation and demo, which need none."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ulak import Conflict, Ulak
from ulak.cli import app
from ulak.settings import Settings


@pytest.fixture
async def address(tmp_path):
    found = f"sqlite:///{tmp_path}/ulak.db"
    async with Ulak(found, settings=Settings(store=found), work=False) as ulak:
        for number, name in enumerate(("ahmet", "berat")):
            await ulak.dispatch.put_helper(name, name=name.title(), latitude=41.0 + number * 1e-3, longitude=29.0)
    return found


@pytest.fixture
def run(address, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words, as_json=True):
        given = ["dispatch", *words, f"--set=store={address}", *(["--json"] if as_json else [])]
        done = CliRunner().invoke(app, given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        begins = re.search(r"^[\[{]", done.output, re.MULTILINE)
        return json.JSONDecoder().raw_decode(done.output[begins.start() :])[0] if as_json else done.output

    return run


def simulate(*words):
    return CliRunner().invoke(app, ["dispatch", "simulate", *words])


def test_a_task_is_opened_answered_explained_and_listed(run):
    made = run("open", "market", "--latitude", "41.0", "--longitude", "29.0", "--requester", "ayse")
    assert made["pendingAssignments"][0]["helperId"] == "ahmet"
    assert run("reject", made["id"], "ahmet")["pendingAssignments"][0]["helperId"] == "berat"
    assert run("accept", made["id"], "berat")["status"] == "ASSIGNED"
    with pytest.raises(Conflict, match="somebody else"):
        run("accept", made["id"], "ahmet")
    assert [one["id"] for one in run("list", "--status", "ASSIGNED")["items"]] == [made["id"]]
    assert run("explain", made["id"])["searches"][0]["found"] == 2
    assert [one["id"] for one in run("helpers", "--status", "BUSY")["items"]] == ["berat"]
    assert run("fairness")["helpers"] == 2
    assert run("cancel", made["id"], "--reason", "thanks")["status"] == "CANCELLED"
    shown = run("show", made["id"], as_json=False)
    assert "rejected  ahmet" in shown
    assert "cancelled" in shown
    explained = run("explain", made["id"], as_json=False)
    assert re.search(r"\dT\d\d:\d\d", shown + explained) is None  # times are this machine's, as in every table


def test_a_simulation_prints_its_policies_and_nothing_else():
    done = simulate("--helpers", "20", "--requests", "300", "--silent", "0.3", "--seed", "1", "--json")
    found = json.loads(done.output)
    assert found.keys() == {"policies"}
    assert [one["policy"] for one in found["policies"]] == ["seed", "repaired", "width-3", "width-7"]
    assert all(one.keys() == {"policy", "medianSeconds", "p95Seconds", "gini"} for one in found["policies"])
    median = {one["policy"]: one["medianSeconds"] for one in found["policies"]}
    assert median["repaired"] <= 150
    assert median["seed"] > 3300


def test_a_simulation_is_shown_as_a_table_and_a_plot():
    done = simulate("--requests", "20", "--plot")
    assert "repaired" in done.output
    assert "█" in done.output


def test_the_help_of_a_picture_names_the_extra_that_it_needs():
    shown = CliRunner().invoke(app, ["dispatch", "simulate", "--help"], env={"COLUMNS": "200"})
    assert "needs the extra plot" in shown.output


def test_recorded_tasks_are_simulated(run):
    run("open", "market", "--latitude", "41.0", "--longitude", "29.0")
    done = run("simulate", "--recorded")
    assert [one["policy"] for one in done["policies"]] == ["seed", "repaired", "width-3", "width-7"]


@pytest.mark.slow
def test_a_demo_tells_of_a_town():
    words = ["dispatch", "demo", "--speed", "3600", "--minutes", "60", "--helpers", "10"]
    done = subprocess.run([sys.executable, "-m", "ulak", *words], capture_output=True, text=True, check=True)
    assert "is asked" in done.stdout
    assert "gini" in done.stdout
    assert done.stderr == ""
