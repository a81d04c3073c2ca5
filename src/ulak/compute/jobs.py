"""The room's handlers: a durable task, run by the engine. Attempts, retries and results are the spine's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import MsgspecError

from ulak import codec
from ulak.compute.endings import CUT_OFF, cause_of
from ulak.compute.engine.engine import Engine
from ulak.compute.model import Result, Task, TaskStatus, TaskType
from ulak.errors import Permanent
from ulak.spine.job import Job
from ulak.spine.outcome import Dead, Done, Retry

# A kind for each class, so that neither waits behind the other.
KINDS = {TaskType.CPU_BOUND: "compute.run.cpu", TaskType.IO_BOUND: "compute.run.io"}
MAX_RETRIES = 100
MAX_RESULT_BYTES = 1_048_576


def to_task(job: Job, timeout_seconds: float) -> Task:
    """The task of a job: one attempt of it."""
    task = Task.from_dict({"task_id": job.uuid, **job.payload})  # a job that was enqueued by its kind has no other id
    return replace(task, max_retries=0, timeout_seconds=min(task.timeout_seconds or timeout_seconds, timeout_seconds))


class Runs:
    def __init__(self, engine: Callable[[], Engine], timeout_seconds: float) -> None:
        self._engine = engine
        self._timeout_seconds = timeout_seconds

    async def run(self, job: Job) -> Done | Retry | Dead:
        if job.attempt > 1 and job.payload.get("max_retries") == 0:
            return Dead(CUT_OFF, "uncertain")
        task = to_task(job, self._timeout_seconds)
        result = await self._engine().attempt(task, job.attempt)
        if result.is_success:
            return Done(_bounded(result, job.attempt))
        if job.attempt <= job.payload.get("max_retries", 3):
            return Retry(None, f"{result.status}: {result.error}")
        return Dead(cause_of(result, job.attempt), code=result.status.value)


def _bounded(result: Result, attempt: int) -> dict[str, Any]:
    """The result as it is kept. One that is not JSON or too large fails for good: it would be the same next time."""
    fields = result.to_dict()
    try:
        size = len(codec.encode(fields))
    except (TypeError, ValueError, RecursionError, MsgspecError) as error:
        raise Permanent(_refusal(result, attempt, f"a durable task's result must be JSON: {error}")) from error
    if size > MAX_RESULT_BYTES:
        most = MAX_RESULT_BYTES // 1024
        text = f"the result has {size / 1024:.1f} KiB; at most {most} are kept: return where it is instead"
        raise Permanent(_refusal(result, attempt, text))
    return fields


def _refusal(result: Result, attempt: int, error: str) -> str:
    return cause_of(replace(result, status=TaskStatus.FAILED, error=error), attempt)
