"""`ulak.compute`: durable tasks, which survive the process. The engine that runs them is started when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from ulak import ids
from ulak.compute.backend import Backend
from ulak.compute.cpus import usable_cpus
from ulak.compute.engine import Engine
from ulak.compute.errors import Expired
from ulak.compute.gauges import Point, points
from ulak.compute.jobs import KINDS, MOST_RETRIES, read_cause
from ulak.compute.model import Result, Task, TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings
from ulak.errors import IllegalTransition, Invalid, NotFound
from ulak.settings import Compute as Section
from ulak.spine.cancel import CANCEL
from ulak.spine.form import to_rows
from ulak.spine.job import NewJob, Priority, Record
from ulak.spine.jobs import read_record
from ulak.spine.loop import Loops
from ulak.spine.store import Store

LOOK_SECONDS = 0.5
MOST_WAIT_SECONDS = 300.0


def engine_settings(section: Section) -> ComputeSettings:
    return ComputeSettings(
        cpu_workers=section.cpu_workers or None,
        io_workers=section.io_workers,
        io_threads=section.io_threads,
        script_root=section.script_root,
        recycle_tasks=section.recycle_tasks or None,
        recycle_bytes=section.recycle_mb * 1024 * 1024 or None,
        recycle_seconds=section.recycle_seconds or None,
    )


class Compute:
    def __init__(self, section: Section, history_days: float, open_parts: Callable[[], tuple[Store, Loops]]) -> None:
        self._section = section
        self._history_millis = round(history_days * 86_400_000)
        self._parts = open_parts
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """The engine of this process, started when first asked for."""
        if self._engine is None:
            settings = engine_settings(self._section)
            self._engine = Engine(settings, backend=_cluster(settings, self._section.ray_address))
        return self._engine

    def close(self) -> None:
        """The spine has waited for what ran; what is left is ended, and comes back at the next start."""
        if self._engine is not None:
            self._engine.close(0)
            self._engine = None

    def places(self, task_type: TaskType) -> int:
        """How many tasks of a class can run at a time."""
        section = self._section
        if task_type is TaskType.IO_BOUND:
            return section.io_workers * section.io_threads
        return section.cpu_workers or usable_cpus()

    async def submit(self, task: Task) -> UUID:
        """Accept a task durably; answers the id under which it is known."""
        return (await self.submit_many([task]))[0]

    async def submit_many(self, tasks: list[Task]) -> list[UUID]:
        """All in one transaction, or none."""
        store, loops = self._parts()
        rows = to_rows([self._new_job(task) for task in tasks], store.ids, store.clock.now())
        return [ids.to_uuid(job) for job in await loops.gate.enqueue(rows)] if rows else []

    def _new_job(self, task: Task) -> NewJob:
        self._check_script(task.script_path)
        if task.max_retries > MOST_RETRIES:
            raise Invalid(f"max_retries is {task.max_retries}; a durable task has at most {MOST_RETRIES}")
        return NewJob(KINDS[task.task_type], task.to_dict(), _priority(task))

    def _check_script(self, script_path: str) -> None:
        root = Path(self._section.script_root).resolve()
        script = (root / script_path).resolve()
        if not script.is_relative_to(root):
            raise Invalid(f"script {script_path!r} is outside compute.script_root; only scripts in it are run")
        if not script.is_file():
            raise Invalid(f"there is no script {script_path!r} in compute.script_root; put it there first")

    async def result(self, identifier: UUID | str, wait_seconds: float = 0.0) -> Result | None:
        """How a task ended; None while it has not, after waiting up to `wait_seconds` for it."""
        store, loops = self._parts()
        ends_at = store.clock.monotonic() + min(wait_seconds, MOST_WAIT_SECONDS)
        with loops.watching() as news:
            while True:
                news.clear()
                result = to_result(await self._record(identifier))
                left = ends_at - store.clock.monotonic()
                if result is not None or left <= 0:
                    return result
                await store.clock.wait(news, min(left, LOOK_SECONDS))

    async def status(self, identifier: UUID | str) -> TaskStatus:
        record = await self._record(identifier)
        result = to_result(record)
        if result is not None:
            return result.status
        return TaskStatus.RUNNING if record.status == "running" else TaskStatus.PENDING

    async def cancel(self, identifier: UUID | str) -> str:
        record = await self._record(identifier)
        store, _ = self._parts()
        verdict = await store.submit(CANCEL, record.id)
        if verdict == "finished":
            raise IllegalTransition(f"task {identifier} is over already; there is nothing to cancel")
        return verdict.upper()

    async def _record(self, identifier: UUID | str) -> Record:
        store, _ = self._parts()
        job = _job_of(identifier)
        record = None if job is None else await store.read(read_record, job)
        if record is not None and record.kind in KINDS.values():
            return record
        if record is None and job is not None and ids.made_at(job) < store.clock.now() - self._history_millis:
            raise Expired(f"task {identifier} is older than spine.history_days; its result was dropped")
        raise NotFound(f"no task {identifier}; it was never accepted here")

    def stats(self) -> dict[str, Any]:
        """What the engine of this process has counted, by component; empty before its first task."""
        return {} if self._engine is None else {"metrics": self._engine.metrics(), "status": self._engine.status()}

    def gauges(self) -> Iterable[Point]:
        """The same for /metrics."""
        return [] if self._engine is None else points(self._engine.metrics())


def to_result(record: Record) -> Result | None:
    """A finished job as a result."""
    if record.settled_at is None:
        return None
    if record.status == "done":
        return Result.from_dict(record.detail)
    status, error, stderr = _ending(record)
    return Result(
        str(ids.to_uuid(record.id)),
        status,
        error=error,
        started_at=record.started_at,
        completed_at=record.settled_at,
        stderr=stderr,
        attempts=record.attempt,
    )


def _ending(record: Record) -> tuple[TaskStatus, str, str]:
    if record.status == "cancelled":
        reason = record.detail.get("reason") if isinstance(record.detail, dict) else None
        return TaskStatus.CANCELLED, reason or "cancelled before it ran", ""
    return read_cause(str(record.detail))


def _cluster(settings: ComputeSettings, address: str) -> Backend | None:
    if not address:
        return None
    from ulak.compute.ray_backend import RayBackend  # its library is an extra

    return RayBackend(settings, address)


def _priority(task: Task) -> Priority:
    try:
        return Priority(task.priority)
    except ValueError as error:
        raise Invalid(f"priority {task.priority} is not known; use 0 (urgent) to 3 (low)") from error


def _job_of(identifier: UUID | str) -> int | None:
    try:
        return ids.from_uuid(identifier if isinstance(identifier, UUID) else UUID(identifier))
    except ValueError:
        return None
