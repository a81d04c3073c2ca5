"""What a user hands in and gets back: Task, Result, their states, and the context a script sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ulak.errors import Invalid

_VARIANT = {digit: "89ab"[number % 4] for number, digit in enumerate("0123456789abcdef")}


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
    """What a script's `main(params, context)` may know about its own run."""

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
        if self.max_retries < 0:
            raise Invalid(f"task {self.id}: max_retries is {self.max_retries}; give 0 or more")

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
        return cls(_new_id(), str(script_path), dict(params or {}), task_type, max_retries, timeout_seconds, priority)

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
                dict(fields.get("params") or {}),
                TaskType(fields.get("task_type", TaskType.IO_BOUND)),
                fields.get("max_retries", 3),
                fields.get("timeout_seconds"),
                fields.get("priority", 2),
            )
        except KeyError as missing:
            raise Invalid(f"a task without {missing}; give task_id and script_path") from None
        except ValueError as wrong:
            raise Invalid(f"task {fields.get('task_id')}: {wrong}; use io_bound or cpu_bound") from None


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
        )


def _new_id() -> str:
    """A random UUID (version 4) as text; by way of `uuid.UUID` it would cost three times as much."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
