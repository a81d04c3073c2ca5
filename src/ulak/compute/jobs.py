"""The room's handlers: a durable task, run by the engine. Attempts, retries and results are the spine's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import MsgspecError

from ulak import codec, ids
from ulak.compute.engine import Engine
from ulak.compute.model import Result, Task, TaskStatus, TaskType
from ulak.errors import Permanent
from ulak.spine.job import Job
from ulak.spine.outcome import Done, Retry

# A kind for each class, so that neither waits behind the other; both share one bound.
KINDS = {TaskType.CPU_BOUND: "compute.run.cpu", TaskType.IO_BOUND: "compute.run.io"}
POOL = "compute"
MOST_RETRIES = 100
MOST_RESULT_BYTES = 1_048_576
_MOST_ERROR_CHARACTERS = 1000
_MOST_STDERR_CHARACTERS = 500
_STDERR = "\nstderr: "
_CAUSE = re.compile(r"(?:Permanent: )?(FAILED|TIMED_OUT|CRASHED) after \d+ attempt", re.ASCII)


def to_task(job: Job, timeout_seconds: float) -> Task:
    """The task of a job: one attempt of it, under the job's id."""
    task = Task.from_dict({**job.payload, "task_id": str(ids.to_uuid(job.id))})
    return replace(task, max_retries=0, timeout_seconds=min(task.timeout_seconds or timeout_seconds, timeout_seconds))


class Runs:
    def __init__(self, engine: Callable[[], Engine], timeout_seconds: float) -> None:
        self._engine = engine
        self._timeout_seconds = timeout_seconds

    async def run(self, job: Job) -> Done | Retry:
        task = to_task(job, self._timeout_seconds)
        result = await self._engine().attempt(task, job.attempt)
        if result.is_success:
            return Done(_bounded(result, job.attempt))
        if job.attempt <= job.payload.get("max_retries", 3):
            return Retry(None, f"{result.status}: {result.error}")
        raise Permanent(_cause(result.status, job.attempt, str(result.error), result.stderr))


def _bounded(result: Result, attempt: int) -> dict[str, Any]:
    """The result as it is kept. One that is no JSON or too large fails for good: it would be the same next time."""
    fields = result.to_dict()
    try:
        size = len(codec.encode(fields))
    except (TypeError, ValueError, RecursionError, MsgspecError) as error:
        reason = f"a durable task's result must be JSON: {error}"
        raise Permanent(_cause(TaskStatus.FAILED, attempt, reason)) from error
    if size > MOST_RESULT_BYTES:
        most = MOST_RESULT_BYTES // 1024
        reason = f"the result has {size / 1024:.1f} KiB; at most {most} are kept: return where it is instead"
        raise Permanent(_cause(TaskStatus.FAILED, attempt, reason))
    return fields


def _cause(status: TaskStatus, attempt: int, error: str, stderr: str = "") -> str:
    tail = f"{_STDERR}{stderr[-_MOST_STDERR_CHARACTERS:]}" if stderr else ""
    return f"{status} after {attempt} attempt(s): {error[:_MOST_ERROR_CHARACTERS]}{tail}"


def read_cause(cause: str) -> tuple[TaskStatus, str, str]:
    """How the last attempt of a dead letter ended, its error, and the end of what it said about it."""
    error, _, stderr = cause.removeprefix("Permanent: ").partition(_STDERR)
    if cause.startswith("poison"):  # the process died with it, again and again
        return TaskStatus.CRASHED, error, stderr
    found = _CAUSE.match(cause)
    return TaskStatus(found[1]) if found else TaskStatus.FAILED, error, stderr
