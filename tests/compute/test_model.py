"""Task and Result: the document's fields, there and back."""

from __future__ import annotations

import json
import uuid

import pytest

from ulak.compute import Engine, ExecutionContext, Result, ScriptRefused, Task, TaskStatus, TaskType
from ulak.errors import Invalid


def test_task_has_the_documents_fields():
    task = Task.create(script_path="/path/to/script.py", params={"value": 42}, task_type=TaskType.IO_BOUND)
    assert task.to_dict() == {
        "task_id": task.id,
        "script_path": "/path/to/script.py",
        "params": {"value": 42},
        "task_type": "io_bound",
        "max_retries": 3,
    }
    assert uuid.UUID(task.id)


def test_task_survives_json():
    task = Task.create("a.py", {"x": [1, None]}, TaskType.CPU_BOUND, 5, timeout_seconds=1.5, priority=0)
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_task_of_the_document_needs_no_retries_field():
    fields = {"task_id": "abc", "script_path": "script.py", "params": {"value": 42}, "task_type": "io_bound"}
    assert Task.from_dict(fields).max_retries == 3


@pytest.mark.parametrize("fields", [{"script_path": "a.py"}, {"task_id": "a", "script_path": "b", "task_type": "gpu"}])
def test_incomplete_or_unknown_task_is_invalid(fields):
    with pytest.raises(Invalid, match="task"):
        Task.from_dict(fields)


@pytest.mark.parametrize(
    ("fields", "word"),
    [({"task_id": 5}, "task_id"), ({"script_path": 5}, "script_path"), ({"params": [1]}, "params")],
)
def test_a_field_of_a_wrong_type_is_named(fields, word):
    with pytest.raises(Invalid, match=word) as refused:
        Task.from_dict({"task_id": "a", "script_path": "b", **fields})
    assert [name for name, _ in refused.value.fields] == [word]


def test_negative_retries_are_invalid():
    with pytest.raises(Invalid, match="max_retries"):
        Task.create("a.py", max_retries=-1)


def test_result_of_the_document_is_read():
    fields = {
        "task_id": "uuid",
        "status": "SUCCESS",
        "data": {"a": 1},
        "error": None,
        "started_at": "2024-01-01T12:00:00",
        "completed_at": "2024-01-01T12:00:01",
    }
    result = Result.from_dict(fields)
    assert result.is_success
    assert {key: result.to_dict()[key] for key in fields} == fields


def test_failed_result_has_an_error():
    result = Result.failed("a", "it broke")
    assert (result.status, result.error, result.is_success) == (TaskStatus.FAILED, "it broke", False)
    assert Result.from_dict(result.to_dict()) == result


def test_context_names_task_and_worker():
    context = ExecutionContext(task_id="abc-123-def-456", worker_id="io-1")
    assert (context.task_id, context.worker_id) == ("abc-123-def-456", "io-1")


def test_only_pending_and_running_are_not_final():
    assert [status for status in TaskStatus if not status.is_final] == [TaskStatus.PENDING, TaskStatus.RUNNING]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", 99), ("priority", -1), ("priority", True), ("priority", "2"), ("task_type", "gpu_bound"),
        ("max_retries", 1.5), ("timeout_seconds", 0), ("timeout_seconds", "5"), ("script_path", "a\0b"),
        ("script_path", ""),
    ],
)  # fmt: skip
def test_what_would_fail_later_is_refused_at_once(field, value):
    fields = {"task_id": "a", "script_path": "a.py", field: value}
    with pytest.raises(Invalid, match=field):
        Task.from_dict(fields)


def test_a_type_may_be_given_as_text():
    assert Task.create("a.py", task_type="cpu_bound").task_type is TaskType.CPU_BOUND


@pytest.mark.parametrize("options", [{"priority": 99}, {"task_type": "gpu"}, {"timeout_seconds": -1}])
def test_options_of_an_engine_are_checked(engine, options):
    with pytest.raises(Invalid):
        engine.using(**options)


def test_without_a_root_a_script_may_lie_anywhere(tmp_path):
    (tmp_path / "anywhere.py").write_text("result = params['value'] * 2\n")
    with Engine(cpu_workers=1) as engine:
        task = Task.create(script_path=str(tmp_path / "anywhere.py"), params={"value": 21})
        assert engine.get_result(engine.submit_task(task), 30).data == 42


def test_a_root_binds_when_it_is_set(tmp_path):
    (tmp_path / "outside.py").write_text("result = 1\n")
    (tmp_path / "root").mkdir()
    with Engine(cpu_workers=1, script_root=str(tmp_path / "root")) as engine, pytest.raises(ScriptRefused):
        engine.submit_task(Task.create(str(tmp_path / "outside.py")))
