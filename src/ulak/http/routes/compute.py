"""The compute room's door. Only scripts below the root run, and only with a key that has the scope compute."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from ulak.app import Ulak
from ulak.compute.model import MAX_ID, Task, TaskLine, TaskStatus, TaskType
from ulak.http import prefer
from ulak.http.batch import check_size
from ulak.http.caller import Needs, caller_of
from ulak.http.hot_routes import Routes
from ulak.http.routes.view import Cursor, cursor
from ulak.masking import HIDDEN

TaskId = Annotated[str, Path(max_length=MAX_ID)]


class TaskIn(BaseModel):
    """A script to run, and with what."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"script_path": "report.py", "params": {"value": 42}, "task_type": "cpu_bound"}]
        },
    )

    task_id: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_ID,
        description="The caller's own id. A task that is known already is not accepted again.",
    )
    script_path: str = Field(min_length=1, max_length=1000)
    params: dict[str, Any] = Field(default_factory=dict)
    task_type: TaskType = TaskType.IO_BOUND
    max_retries: int = Field(3, ge=0, le=100, strict=True)
    timeout_seconds: float | None = Field(None, gt=0, strict=True, allow_inf_nan=False)
    priority: int = Field(2, ge=0, le=3, strict=True, description="0 urgent, 1 high, 2 normal, 3 low")

    def to_task(self) -> Task:
        task = Task.create(
            self.script_path,
            self.params,
            self.task_type,
            self.max_retries,
            timeout_seconds=self.timeout_seconds,
            priority=self.priority,
        )
        return task if self.task_id is None else replace(task, id=self.task_id)


class TaskOut(BaseModel):
    task_id: str
    status: str


class ListedTask(BaseModel):
    """`job_id` is the task's job in the store, with its timeline."""

    task_id: str
    job_id: str
    status: str
    script_path: str
    task_type: str
    attempts: int
    accepted_at: datetime
    completed_at: datetime | None


class TaskPage(BaseModel):
    items: list[ListedTask]
    next: str | None


class ResultOut(BaseModel):
    """How a task ended, and what it printed."""

    task_id: str
    status: str
    data: Any = None
    error: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    stdout: str = ""
    stderr: str = ""
    attempts: int = 1
    worker_id: str | None = None
    traceback: str | None = None


def routes(ulak: Ulak) -> Routes:
    router = APIRouter(prefix="/api/compute", tags=["compute"], dependencies=[Depends(Needs("compute"))])

    async def accepted(tasks: list[TaskIn]) -> list[TaskOut]:
        """A task with an id of the caller's may have been known, and over, for long."""
        identifiers = await ulak.compute.submit_many([task.to_task() for task in tasks])
        found = await ulak.compute.statuses([task.task_id for task in tasks if task.task_id is not None])
        return [TaskOut(task_id=one, status=found.get(one, TaskStatus.PENDING)) for one in identifiers]

    @router.post("/tasks", status_code=202, summary="Accept a task durably", openapi_extra=prefer.DESCRIBED)
    async def submit(task: TaskIn) -> TaskOut:
        return (await accepted([task]))[0]

    @router.post(
        "/tasks/batch",
        status_code=202,
        summary="Accept many tasks in one transaction, or none",
        openapi_extra=prefer.DESCRIBED,
    )
    async def submit_many(tasks: list[TaskIn]) -> list[TaskOut]:
        check_size(tasks, ulak.settings.http.max_batch)
        return await accepted(tasks)

    @router.get("/tasks", summary="Tasks, newest first")
    async def list_tasks(
        after: Cursor = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> TaskPage:
        found, more = await ulak.compute.list(cursor(after), limit)
        return TaskPage(items=[_listed(one) for one in found], next=str(found[-1].job) if found and more else None)

    @router.get("/tasks/{task_id}", summary="Where a task stands")
    async def show(task_id: TaskId) -> TaskOut:
        return TaskOut(task_id=task_id, status=await ulak.compute.status(task_id))

    @router.get("/tasks/{task_id}/result", summary="How a task ended; waits for it if asked to")
    async def result(
        request: Request, task_id: TaskId, wait: Annotated[float, Query(ge=0, le=300, description="seconds")] = 0
    ) -> ResultOut:
        """Without the scope `compute`, which `look` stands in for here, what the script gave and printed is hidden."""
        found = await ulak.compute.result(task_id, wait)
        if found is None:
            return ResultOut(task_id=task_id, status=await ulak.compute.status(task_id))
        shown = ResultOut(**found.to_dict())
        return shown if caller_of(request).may("compute") else _masked(shown)

    @router.post("/tasks/{task_id}/cancel", summary="Cancel a task, also while it runs")
    async def cancel(task_id: TaskId) -> TaskOut:
        return TaskOut(task_id=task_id, status=await ulak.compute.cancel(task_id))

    @router.get("/stats", summary="What the engine of this process has counted, and how its parts are")
    async def stats() -> dict[str, Any]:
        return ulak.compute.stats()

    return Routes(
        routers=(router,),
        takes_work=(("POST", "/api/compute/tasks"), ("POST", "/api/compute/tasks/batch")),
        scope="run scripts; always with a key of its own, never by admin or by being on this machine",
        by_name=True,
    )


def _listed(task: TaskLine) -> ListedTask:
    return ListedTask(
        task_id=task.id,
        job_id=str(task.job),
        status=task.status,
        script_path=task.script_path,
        task_type=task.task_type,
        attempts=task.attempts,
        accepted_at=task.accepted_at,
        completed_at=task.completed_at,
    )


def _masked(result: ResultOut) -> ResultOut:
    hidden = {name: HIDDEN for name in ("error", "stdout", "stderr", "traceback") if getattr(result, name)}
    return result.model_copy(update={"data": None if result.data is None else HIDDEN, **hidden})
