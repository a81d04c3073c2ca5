"""Task and Result as a user sees them, their states, and the context that a script gets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ulak.errors import Invalid

_VARIANT = {digit: "89ab"[number % 4] for number, digit in enumerate("0123456789abcdef")}


MAX_ID = 200  # characters of a task's id
PRIORITIES = range(4)  # urgent, high, normal, low


class TaskType(StrEnum):
    IO_BOUND = "io_bound"
    CPU_BOUND = "cpu_bound"


class TaskStatus(StrEnum):
    """Where a task is, or how it ended. The first two are not final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    CRASHED = "CRASHED"

    @property
    def is_final(self) -> bool:
        return self not in (TaskStatus.PENDING, TaskStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """The second argument of a script's `main(params, context)`: which run this is."""

    task_id: str
    worker_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one script, as asked for."""

    id: str
    script_path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    task_type: TaskType = TaskType.IO_BOUND
    max_retries: int = 3
    timeout_seconds: float | None = None
    priority: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_type", to_type(self.task_type))
        check_priority(self.priority)
        if not _is_text(self.id):
            raise Invalid(f"task_id {self.id!r:.50} is not an id; give text", fields=[("task_id", "must be text")])
        if not _is_text(self.script_path) or "\0" in self.script_path:
            raise Invalid(
                f"task {self.id}: script_path {self.script_path!r:.100} is not a path; name a script",
                fields=[("script_path", "is not a path; name a script")],
            )
        if not _is_whole(self.max_retries) or self.max_retries < 0:
            raise Invalid(f"task {self.id}: max_retries is {self.max_retries!r:.50}; give 0 or more")
        check_timeout(self.timeout_seconds)

    @classmethod
    def create(
        cls,
        script_path: str,
        params: Mapping[str, Any] | None = None,
        task_type: TaskType = TaskType.IO_BOUND,
        max_retries: int = 3,
        *,
        timeout_seconds: float | None = None,
        priority: int = 2,
    ) -> Task:
        """A task with an id of its own."""
        given = _parameters(params)
        return cls(_new_id(), str(script_path), given, task_type, max_retries, timeout_seconds, priority)

    def to_dict(self) -> dict[str, Any]:
        """The document's fields; ours are added only when they say something."""
        fields: dict[str, Any] = {
            "task_id": self.id,
            "script_path": self.script_path,
            "params": dict(self.params),
            "task_type": self.task_type.value,
            "max_retries": self.max_retries,
        }
        if self.timeout_seconds is not None:
            fields["timeout_seconds"] = self.timeout_seconds
        if self.priority != 2:
            fields["priority"] = self.priority
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Task:
        try:
            return cls(
                fields["task_id"],
                fields["script_path"],
                _parameters(fields.get("params")),
                fields.get("task_type", TaskType.IO_BOUND),
                fields.get("max_retries", 3),
                fields.get("timeout_seconds"),
                fields.get("priority", 2),
            )
        except KeyError as missing:
            raise Invalid(f"a task without {missing}; give task_id and script_path") from None


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in a list; `job` is its job in the store."""

    id: str
    job: int
    status: TaskStatus
    script_path: str
    task_type: TaskType
    attempts: int
    accepted_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Result:
    """How a task ended. `error` is None exactly when the status is SUCCESS."""

    task_id: str
    status: TaskStatus
    data: Any = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    stdout: str = ""
    stderr: str = ""
    attempts: int = 1
    worker_id: str | None = None
    traceback: str | None = None  # of a task that raised, with the script's own lines

    @classmethod
    def failed(cls, task_id: str, error: str, status: TaskStatus = TaskStatus.FAILED) -> Result:
        return cls(task_id, status, error=error)

    @property
    def is_success(self) -> bool:
        return self.status is TaskStatus.SUCCESS

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "status": self.status.value,
            "data": self.data,
            "error": self.error,
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "completed_at": self.completed_at.isoformat() if self.completed_at else None,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "attempts": self.attempts,
            "worker_id": self.worker_id,
            "traceback": self.traceback,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Result:
        return cls(
            fields["task_id"],
            TaskStatus(fields["status"]),
            fields.get("data"),
            fields.get("error"),
            _instant(fields.get("started_at")),
            _instant(fields.get("completed_at")),
            fields.get("stdout", ""),
            fields.get("stderr", ""),
            fields.get("attempts", 1),
            fields.get("worker_id"),
            fields.get("traceback"),
        )


def is_id(given: Any) -> bool:
    """Whether a durable task can be found by it, also over HTTP, where clients remove . and .. from a path."""
    is_fit = isinstance(given, str) and 0 < len(given) <= MAX_ID and given.isprintable()
    return is_fit and "/" not in given and given not in (".", "..")


def check_id(task_id: Any) -> None:
    if not is_id(task_id):
        text = f"must be 1 to {MAX_ID} printable characters without /, and not . or .."
        raise Invalid(f"task_id {task_id!r:.100} {text}", fields=[("task_id", text)])


def to_type(given: Any) -> TaskType:
    try:
        return TaskType(given)
    except ValueError:
        raise Invalid(f"task_type {given!r:.50} is not known; use io_bound or cpu_bound") from None


def check_priority(given: object) -> None:
    if not _is_whole(given) or given not in PRIORITIES:
        raise Invalid(f"priority {given!r:.50} is not known; use 0 (urgent) to 3 (low)")


def check_timeout(given: object) -> None:
    if given is not None and (not isinstance(given, int | float) or not given > 0):
        raise Invalid(f"timeout_seconds is {given!r:.50}; give seconds above 0, or None for no limit")


def _parameters(given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise Invalid(f"params of a task are {given!r:.50}; give an object", fields=[("params", "must be an object")])
    return dict(given or {})


def _is_text(given: object) -> bool:
    return isinstance(given, str) and given != ""


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _new_id() -> str:
    """A random UUID (version 4) as text; by way of `uuid.UUID` it would cost three times as much."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
