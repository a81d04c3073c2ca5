"""The command line, and a server that is killed with tasks accepted: they run after the restart."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.cli.processes import command, server
from tests.compute.conftest import Gate, eventually, is_alive
from tests.compute.rooms import write_scripts

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    write_scripts(tmp_path / "scripts")
    return tmp_path


def said(folder, *words, **options):
    return json.loads(command(folder, "compute", *words, **options).stdout.splitlines()[-1])


def test_run_prints_only_the_result_to_stdout(folder):
    done = command(folder, "compute", "run", "scripts/double.py", "--param", "value=21", "--cpu")
    assert json.loads(done.stdout)["data"]["value"] == 42
    assert "doubling" in done.stderr.splitlines()


def test_run_of_a_failing_script_fails(folder):
    done = command(folder, "compute", "run", "scripts/fail.py", "--param", "text=dear me", check=False)
    assert done.returncode == 1
    assert "went wrong" in done.stderr
    assert json.loads(done.stdout)["error"] == "ValueError: dear me"
    wrong = command(folder, "compute", "run", "scripts/fail.py", "--param", "text", check=False)
    assert "NAME=VALUE" in wrong.stderr


def test_map_runs_a_script_for_every_line_in_order(folder):
    (folder / "items.jsonl").write_text("".join(f'{{"value": {n}}}\n' for n in range(20)))
    done = command(folder, "compute", "map", "scripts/double.py", "items.jsonl", "--cpu")
    assert [json.loads(line)["data"]["value"] for line in done.stdout.splitlines()] == [n * 2 for n in range(20)]
    (folder / "items.jsonl").write_text('{"value": 1}\n[1]\n')
    assert "line 2" in command(folder, "compute", "map", "scripts/double.py", "items.jsonl", check=False).stderr


def test_durable_tasks_are_submitted_followed_and_cancelled_beside_a_server(folder):
    gate = Gate(folder)
    with server(folder):
        done = said(folder, "submit", "double.py", "--param", "value=3", "--wait", "60")
        assert (done["status"], done["data"]["value"]) == ("SUCCESS", 6)
        assert said(folder, "result", done["task_id"]) == done
        params = ("--param", f"started={gate.started}", "--param", f"gate={gate.path}")
        held = said(folder, "submit", "hold.py", "--cpu", *params)
        gate.wait()
        once = said(
            folder, "submit", "fail.py", "--param", "text=no", "--retries", "0", "--timeout", "9", "--wait", "60"
        )
        assert (once["status"], once["attempts"], once["error"]) == ("FAILED", 1, "ValueError: no")
        shown = command(folder, "compute", "stats").stdout
        assert "io-0" in shown
        assert re.search(r"^waiting cpu bound +0 *$", shown, re.MULTILINE)
        assert re.search(r"^run seconds +\d+\.\d{3} *$", shown, re.MULTILINE)
        stats = json.loads(command(folder, "compute", "stats", "--json").stdout)
        assert stats["metrics"]["workers"]["cpu-0"]["active_count"] == 1
        cancelled = json.loads(command(folder, "compute", "cancel", held["task_id"], "--json").stdout)
        assert cancelled["status"] == "CANCELLING"
        eventually(lambda: said(folder, "result", held["task_id"])["status"] == "CANCELLED")


def ask(process, key, path, body=None):
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{process.address}/api/compute/tasks{path}", data, headers)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def test_a_task_without_retries_does_not_run_again_after_a_kill_of_the_server(folder):
    gate = Gate(folder)
    key = json.loads(command(folder, "keys", "create", "shop", "--scope", "compute", "--json").stdout)["token"]
    params = {"started": gate.started, "gate": gate.path}
    with server(folder) as process:
        body = {"script_path": "hold.py", "params": params, "task_type": "cpu_bound", "max_retries": 0}
        accepted = ask(process, key, "", body)
        worker = gate.wait()
        process.stop(signal.SIGKILL)
    eventually(lambda: not is_alive(worker))
    Path(gate.started).unlink()
    with server(folder) as process:
        result = ask(process, key, f"/{accepted['task_id']}/result?wait=60")
    assert result["status"] == "CRASHED"
    assert "may have had its effect" in result["error"]
    assert not Path(gate.started).exists()


def test_accepted_tasks_survive_the_kill_of_the_server(folder):
    gate = Gate(folder)
    notes = folder / "notes"
    tasks = [
        {"script_path": "hold.py", "params": {"started": gate.started, "gate": gate.path}, "task_type": "cpu_bound"}
    ]
    tasks += [
        {"script_path": "note.py", "params": {"path": str(notes), "line": line}, "task_type": "cpu_bound"}
        for line in range(30)
    ]
    one_worker = {"ULAK_COMPUTE__CPU_WORKERS": "1"}
    key = json.loads(command(folder, "keys", "create", "shop", "--scope", "compute", "--json").stdout)["token"]
    with server(folder, **one_worker) as process:
        accepted = ask(process, key, "/batch", tasks)
        worker = gate.wait()
        process.stop(signal.SIGKILL)
    eventually(lambda: not is_alive(worker))  # no orphan
    assert not notes.exists()
    Path(gate.path).unlink()
    Path(gate.path).write_text("after the kill")
    with server(folder, **one_worker) as process:
        results = [ask(process, key, f"/{task['task_id']}/result?wait=60") for task in accepted]
    assert {result["status"] for result in results} == {"SUCCESS"}
    assert results[0]["data"] == "after the kill"
    assert sorted(map(int, notes.read_text().split())) == list(range(30))
