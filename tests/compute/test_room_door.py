"""The room's routes over a real server: the scope, the answers, and what /metrics shows."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.compute.rooms import write_scripts
from ulak.compute import Result, Task
from ulak.compute.engine.gauges import GAUGES

PAGE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")


@pytest.fixture
def room(tmp_path):
    root = write_scripts(tmp_path / "scripts")

    @contextlib.asynccontextmanager
    async def open_room(**more):
        async with serving(**{"compute.script_root": root, "compute.cpu_workers": 1, **more}) as served:
            served.key = await served.make_key("compute", "metrics")
            yield served

    return open_room


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


async def test_a_task_that_is_posted_again_is_answered_with_where_it_stands(room):
    async with room() as served:
        task = {"script_path": "double.py", "params": {"value": 4}, "task_id": "monthly"}
        first = await served.post("/api/compute/tasks", task)
        assert (first.status, first.body["task_id"]) == (202, "monthly")
        assert (await served.get("/api/compute/tasks/monthly/result?wait=60")).body["status"] == "SUCCESS"
        again = await served.post("/api/compute/tasks", task)
        assert (again.status, again.body) == (202, {"task_id": "monthly", "status": "SUCCESS"})
        many = await served.post("/api/compute/tasks/batch", [task, TASK])
        assert many.body[0] == {"task_id": "monthly", "status": "SUCCESS"}
        assert many.body[1]["status"] == "PENDING"


ROUTES = [("POST", "/tasks"), ("POST", "/tasks/batch")]
TASK = {"script_path": "double.py", "params": {"value": 1}}


@pytest.mark.parametrize(("path", "body"), [("/tasks", TASK), ("/tasks/batch", [TASK])])
async def test_at_a_bound_a_task_waits_as_long_as_its_caller_prefers_and_the_page_says_so(room, path, body):
    async with room(work=False, **{"spine.capacity": 1}) as served:
        await submit(served, "double.py")
        answer = await served.post(f"/api/compute{path}", body, headers={"Prefer": "wait=0"})
        assert (answer.status, "Retry-After" in answer.headers) == (429, True)
        described = (await served.get("/openapi.json")).body["paths"][f"/api/compute{path}"]["post"]
        assert [one["name"] for one in described["parameters"]] == ["Prefer"]


@pytest.mark.parametrize(("required", "status"), [(True, 401), (False, 403)])
async def test_nobody_runs_scripts_without_a_key_not_even_on_this_machine(room, monkeypatch, required, status):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)  # the first key comes later
    async with room(work=False, **{"http.require_keys": required}) as served:
        served.key = None
        for method, path in ROUTES:
            answer = await served.ask(method, f"/api/compute{path}")
            assert answer.status == status
        assert required or "ulak keys create NAME --scope compute" in answer.text


@pytest.mark.parametrize("scopes", [["jobs"], ["admin", "notify", "reveal"]])
async def test_only_the_scope_by_its_name_runs_scripts(room, scopes):
    async with room(work=False) as served:
        other = await served.make_key(*scopes)
        for method, path in ROUTES:
            assert (await served.ask(method, f"/api/compute{path}", key=other)).status == 403
        assert (await served.post("/api/compute/tasks", TASK)).status == 202


async def test_whoever_may_look_sees_a_result_without_what_the_script_gave(room):
    async with room() as served:
        identifier = await submit(served, "double.py", {"value": 4}, task_type="cpu_bound")
        await served.get(f"/api/compute/tasks/{identifier}/result?wait=60")
        look = await served.make_key("look")
        seen = (await served.get(f"/api/compute/tasks/{identifier}/result", key=look)).body
        assert (seen["status"], seen["data"], seen["stdout"]) == ("SUCCESS", "***", "***")
        assert (await served.get("/api/compute/stats", key=look)).status == 200
        assert (await served.post("/api/compute/tasks", TASK, key=look)).status == 403


async def test_no_other_door_leads_to_a_script(room):
    """Not as a job of the room's kind, nor as what follows a job, nor by mending a dead letter of the room."""
    async with room() as served:
        died = await submit(served, "fail.py", {"text": "no"}, max_retries=0)
        await served.get(f"/api/compute/tasks/{died}/result?wait=60")
        jobs = await served.make_key("jobs", "admin")
        ((letter,),) = [(await served.get("/api/dead", key=jobs)).body["dead"]]
        for caller in (jobs, await served.make_key("jobs", "notify")):
            for job in ({"kind": "compute.run.io", "payload": {}}, {"kind": "a", "continuation": "compute.run.cpu"}):
                assert (await served.post("/api/jobs", job, key=caller)).status == 403
            assert (await served.ask("PUT", f"/api/dead/{letter['id']}/payload", {}, key=caller)).status == 403
        both = await served.make_key("jobs", "compute")
        assert (await served.ask("PUT", f"/api/dead/{letter['id']}/payload", {}, key=both)).status == 204


async def test_who_may_not_run_scripts_can_not_make_a_key_that_may(room):
    async with room(work=False) as served:
        served.key = None
        assert (await served.post("/api/keys", {"name": "mine", "scopes": ["compute"]})).status == 403
        admin = await served.make_key("admin", "compute")
        made = await served.post("/api/keys", {"name": "theirs", "scopes": ["compute"]}, key=admin)
        assert made.status == 201


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ({"script_path": "../secret.py"}, "outside"),
        ({"script_path": "none.py"}, "is not in"),
        ({"script_path": "a\0b.py"}, "script_path"),
        ({"script_path": "a" * 300}, "script_path"),  # longer than a file's name can be
        ({"script_path": "double.py", "priority": True}, "priority"),
        ({"script_path": "double.py", "max_retries": "2"}, "max_retries"),
        ({"script_path": "double.py", "priority": 99}, "priority"),
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
        assert answer.body["fields"]


@pytest.mark.parametrize("value", [b"NaN", b'"\\ud800"', b"[" * 200 + b"]" * 200])
async def test_parameters_that_cannot_be_kept_are_refused_by_name(room, value):
    async with room(work=False) as served:
        body = b'{"script_path":"double.py","params":{"value":%b}}' % value
        answer = await served.post("/api/compute/tasks", data=body, headers={"content-type": "application/json"})
        assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["params"])


@pytest.mark.parametrize("value", [b"9" * 5000, b'"\xff"', b"[" * 50_000 + b"]" * 50_000])
async def test_a_body_that_no_parser_reads_is_refused_by_name(room, value):
    async with room(work=False) as served:
        body = b'{"script_path":"double.py","params":{"value":%b}}' % value
        answer = await served.post("/api/compute/tasks", data=body, headers={"content-type": "application/json"})
        assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["body"])
        assert "can't be read as JSON" in answer.body["message"]


async def test_an_id_that_is_too_long_is_complained_of_once(room):
    async with room(work=False) as served:
        answer = await served.get(f"/api/compute/tasks/{'a' * 300}")
        assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["task_id"])


async def test_a_task_is_posted_as_its_own_dictionary(room):
    async with room() as served:
        task = Task.create("double.py", {"value": 4})
        accepted = await served.post("/api/compute/tasks", task.to_dict())
        assert (accepted.status, accepted.body["task_id"]) == (202, task.id)
        assert (await served.post("/api/compute/tasks", task.to_dict())).body["task_id"] == task.id  # and once
        result = await served.get(f"/api/compute/tasks/{accepted.body['task_id']}/result?wait=60")
        assert Result.from_dict(result.body).data["value"] == 8


async def test_the_list_of_tasks_leads_from_page_to_page_newest_first(room):
    async with room(work=False) as served:
        for name in ("a", "b", "c"):
            assert (await served.post("/api/compute/tasks", {**TASK, "task_id": name})).status == 202
        first = (await served.get("/api/compute/tasks?limit=2")).body
        rest = (await served.get(f"/api/compute/tasks?limit=2&after={first['next']}")).body
    assert [task["task_id"] for task in (*first["items"], *rest["items"])] == ["c", "b", "a"]
    assert {task["status"] for task in first["items"]} == {"PENDING"}
    assert rest["next"] is None


async def test_a_batch_is_taken_whole(room):
    async with room() as served:
        batch = [{"script_path": "double.py", "params": {"value": n}} for n in range(3)]
        accepted = (await served.post("/api/compute/tasks/batch", batch)).body
        results = [await served.get(f"/api/compute/tasks/{one['task_id']}/result?wait=60") for one in accepted]
        assert [result.body["data"]["value"] for result in results] == [0, 2, 4]
        empty = await served.post("/api/compute/tasks/batch", [])
        assert (empty.status, bool(empty.body["fields"])) == (400, True)
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
        for identifier in ("00000000-0000-4000-8000-000000000000", "never-submitted"):
            for path in ("", "/result"):
                assert (await served.get(f"/api/compute/tasks/{identifier}{path}")).status == 404
            assert (await served.post(f"/api/compute/tasks/{identifier}/cancel")).status == 404


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
