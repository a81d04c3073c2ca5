"""The room's handler: a durable task, run by the engine. Attempts, retries and results are the spine's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ulak import codec, ids
from ulak.compute.engine import Engine
from ulak.compute.model import Result, Task, TaskStatus
from ulak.errors import Permanent
from ulak.spine.job import Job
from ulak.spine.outcome import Done, Retry

KIND = "compute.run"
MOST_RESULT_BYTES = 1_048_576


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
        result: Result = replace(await self._engine().run(task), attempts=job.attempt)
        if result.is_success:
            return Done(_bounded(result))
        if job.attempt <= job.payload.get("max_retries", 3):
            return Retry(None, f"{result.status}: {result.error}")
        raise Permanent(f"{result.status} after {job.attempt} attempt(s): {result.error}")


def _bounded(result: Result) -> dict[str, object]:
    """The result as it is kept. One that is no JSON or too large fails for good: it would be the same next time."""
    fields = result.to_dict()
    try:
        size = len(codec.encode(fields))
    except TypeError as error:
        raise Permanent(f"{TaskStatus.FAILED}: a durable task's result must be JSON: {error}") from error
    if size > MOST_RESULT_BYTES:
        raise Permanent(
            f"{TaskStatus.FAILED}: the result has {size} bytes; at most {MOST_RESULT_BYTES} are kept: "
            "store it elsewhere and return where it is"
        )
    return fields
