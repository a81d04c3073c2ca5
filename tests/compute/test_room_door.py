"""The room's routes over a real server: the scope, the answers, and what /metrics shows."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.compute.rooms import write_scripts
from ulak.compute.gauges import GAUGES

PAGE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")


@pytest.fixture
def room(tmp_path):
    root = write_scripts(tmp_path / "scripts")
    return lambda **more: serving(**{"compute.script_root": root, "compute.cpu_workers": 1, **more})


async def submit(served, script, params=None, **fields):
    answer = await served.post("/api/compute/tasks", {"script_path": script, "params": params or {}, **fields})
    assert answer.status == 202, answer.text
    assert answer.body["status"] == "PENDING"
    return answer.body["task_id"]


async def test_a_task_is_accepted_run_and_asked_for(room):
    async with room() as served:
        identifier = await submit(served, "double.py", {"value": 4}, task_type="cpu_bound")
        answer = await served.get(f"/api/compute/tasks/{identifier}/result?wait=60")
        assert (answer.status, answer.body["status"], answer.body["data"]["value"]) == (200, "SUCCESS", 8)
        assert answer.body["stdout"] == "doubling\n"
        assert (await served.get(f"/api/compute/tasks/{identifier}")).body["status"] == "SUCCESS"
        assert (await served.post(f"/api/compute/tasks/{identifier}/cancel")).status == 409


async def test_only_a_key_with_the_scope_may_run_scripts(room, monkeypatch):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)  # the first key comes later
    async with room(**{"http.require_keys": True}) as served:
        allowed, other = await served.make_key("compute"), await served.make_key("jobs")
        task = {"script_path": "double.py", "params": {"value": 1}}
        assert (await served.post("/api/compute/tasks", task)).status == 401
        for method, path in [("POST", "/tasks"), ("POST", "/tasks/batch"), ("GET", "/stats")]:
            assert (await served.ask(method, f"/api/compute{path}", key=other)).status == 403
        assert (await served.post("/api/compute/tasks", task, key=allowed)).status == 202


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ({"script_path": "../secret.py"}, "outside"),
        ({"script_path": "none.py"}, "no script"),
        ({"script_path": "double.py", "task_type": "gpu_bound"}, "task_type"),
        ({"script_path": "double.py", "max_retries": 101}, "max_retries"),
        ({"script_path": "double.py", "timeout_seconds": 0}, "timeout_seconds"),
        ({"script_path": "double.py", "code": "1"}, "code"),
        ({}, "script_path"),
    ],
)
async def test_what_may_not_run_is_refused_by_name(room, task, word):
    async with room(work=False) as served:
        answer = await served.post("/api/compute/tasks", task)
        assert answer.status == 400
        assert word in answer.text


async def test_a_batch_is_taken_whole(room):
    async with room() as served:
        batch = [{"script_path": "double.py", "params": {"value": n}} for n in range(3)]
        accepted = (await served.post("/api/compute/tasks/batch", batch)).body
        results = [await served.get(f"/api/compute/tasks/{one['task_id']}/result?wait=60") for one in accepted]
        assert [result.body["data"]["value"] for result in results] == [0, 2, 4]
        assert (await served.post("/api/compute/tasks/batch", [])).status == 400
        assert (await served.post("/api/compute/tasks/batch", [*batch, {"script_path": "none.py"}])).status == 400


async def test_a_running_task_is_cancelled_over_http(room, gate):
    async with room() as served:
        identifier = await submit(
            served, "hold.py", {"started": gate.started, "gate": gate.path}, task_type="cpu_bound"
        )
        await asyncio.to_thread(gate.wait)
        not_yet = await served.get(f"/api/compute/tasks/{identifier}/result")
        assert (not_yet.status, not_yet.body["status"]) == (200, "RUNNING")
        assert (await served.post(f"/api/compute/tasks/{identifier}/cancel")).body["status"] == "CANCELLING"
        answer = await served.get(f"/api/compute/tasks/{identifier}/result?wait=60")
        assert answer.body["status"] == "CANCELLED"


async def test_an_unknown_task_is_not_found(room):
    async with room(work=False) as served:
        for path in ("", "/result"):
            unknown = await served.get(f"/api/compute/tasks/00000000-0000-4000-8000-000000000000{path}")
            assert unknown.status == 404
        assert (await served.get("/api/compute/tasks/nonsense")).status == 400


async def test_stats_and_metrics_tell_of_the_engine(room):
    async with room() as served:
        assert (await served.get("/api/compute/stats")).body == {}
        assert "ulak_compute" not in (await served.get("/metrics")).text
        identifier = await submit(served, "double.py", {"value": 4}, task_type="cpu_bound")
        await served.get(f"/api/compute/tasks/{identifier}/result?wait=60")
        stats = (await served.get("/api/compute/stats")).body
        assert stats["metrics"]["workers"]["cpu-0"]["total_done"] == 1
        assert stats["status"]["input_queue"] == "accepting"
        text = (await served.get("/metrics")).text
    shown = set(re.findall(r"^# TYPE ulak_(compute_\S+) gauge$", text, re.MULTILINE))
    assert shown == set(GAUGES)
    assert 'ulak_compute_worker_done{worker="cpu-0"} 1.0' in text
    assert 'ulak_compute_queue_depth{class="io_bound"} 0.0' in text
    assert "ulak_compute_accepted 1.0" in text


@pytest.mark.parametrize("name", GAUGES)
def test_every_metric_of_the_engine_is_documented(name):
    assert f"`ulak_{name}`" in PAGE
