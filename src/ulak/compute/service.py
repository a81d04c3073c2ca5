"""`ulak.compute`: durable tasks, which survive the process. The engine that runs them is started when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from ulak.compute.endings import TaskEnd, read_cause
from ulak.compute.engine.backend import Backend
from ulak.compute.engine.engine import Engine
from ulak.compute.engine.gauges import points
from ulak.compute.engine.options import EngineOptions
from ulak.compute.errors import Expired
from ulak.compute.jobs import KINDS, MAX_RETRIES
from ulak.compute.model import Result, Task, TaskLine, TaskStatus, TaskType, check_id, is_id
from ulak.compute.pool.cpus import usable_cpus
from ulak.compute.pool.usage import usage_of
from ulak.compute.records import ACCEPT_TASKS, Submitted, find_each, find_task
from ulak.compute.worker.script import locate
from ulak.errors import IllegalTransition, Invalid, NotFound
from ulak.ids import made_at
from ulak.settings import Compute as Section
from ulak.spine.job import NewJob, OnUncertain, Priority, Record
from ulak.spine.room import Host
from ulak.spine.telemetry import GaugePoint
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.records import STATUSES, page_of_records
from ulak.spine.validate import to_json, to_rows

LOOK_SECONDS = 0.5
NEWEST = 1 << 62
MAX_WAIT_SECONDS = 300.0


def engine_options(section: Section) -> EngineOptions:
    return EngineOptions(
        cpu_workers=section.cpu_workers or None,
        io_workers=section.io_workers,
        io_threads=section.io_threads,
        script_root=section.script_root,
        recycle_tasks=section.recycle_tasks or None,
        recycle_bytes=section.recycle_mb * 1024 * 1024 or None,
        recycle_seconds=section.recycle_seconds or None,
    )


class Compute:
    def __init__(self, section: Section, host: Host) -> None:
        self._section = section
        self._history_millis = round(host.settings.spine.history_days * 86_400_000)
        self._host = host
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """The engine of this process, started when first asked for."""
        if self._engine is None:
            options = engine_options(self._section)
            self._engine = Engine(options, backend=_cluster(options, self._section.ray_address))
        return self._engine

    def close(self) -> None:
        """The spine has waited for what ran; what is left is ended, and comes back at the next start."""
        if self._engine is not None:
            self._engine.close(0)
            self._engine = None

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function that can be imported on one of the engine's processes; it is not kept if the process dies."""
        return await self.engine().run(function, *args, **kwargs)

    def places(self, task_type: TaskType) -> int:
        """How many tasks of a class can run at a time."""
        section = self._section
        if task_type is TaskType.IO_BOUND:
            return section.io_workers * section.io_threads
        return section.cpu_workers or usable_cpus()

    async def submit(self, task: Task) -> str:
        """Accept a task durably and return its id. One that is known already is not accepted again."""
        return (await self.submit_many([task]))[0]

    async def submit_many(self, tasks: list[Task]) -> list[str]:
        """All in one transaction, or none."""
        if not tasks:
            return []
        store, gate = self._host.store, self._host.loops.gate
        jobs = to_rows([self._new_job(task) for task in tasks], store.ids, store.clock.now())
        rows = self._host.telemetry.tracer.stamped_all(jobs)
        batch = [Submitted(task.id, row) for task, row in zip(tasks, rows, strict=True)]
        return await gate.by_policy(rows[0], ACCEPT_TASKS, batch, len(batch))

    def _new_job(self, task: Task) -> NewJob:
        check_id(task.id)
        locate(task.script_path, self._section.script_root)
        to_json(dict(task.params), f"task {task.id}", "params")  # refused by the caller's word for it
        if task.max_retries > MAX_RETRIES:
            text = f"a durable task has at most {MAX_RETRIES}"
            raise Invalid(f"max_retries is {task.max_retries}; {text}", fields=[("max_retries", text)])
        # No retries are for work that must not run twice.
        once: OnUncertain = "hold" if task.max_retries == 0 else "resend"
        return NewJob(KINDS[task.task_type], task.to_dict(), Priority(task.priority), on_uncertain=once)

    async def result(self, identifier: UUID | str, wait_seconds: float = 0.0) -> Result | None:
        """How a task ended; None while it has not, after waiting up to `wait_seconds` for it."""
        store, loops = self._host.store, self._host.loops
        ends_at = store.clock.monotonic() + min(wait_seconds, MAX_WAIT_SECONDS)
        with loops.watching() as news:
            while True:
                news.clear()
                result = to_result(*await self._find(identifier))
                left = ends_at - store.clock.monotonic()
                if result is not None or left <= 0:
                    return result
                await store.clock.wait(news, min(left, LOOK_SECONDS))

    async def status(self, identifier: UUID | str) -> TaskStatus:
        return _status(*await self._find(identifier))

    async def statuses(self, task_ids: Sequence[str]) -> dict[str, TaskStatus]:
        """Where those of them stand that are known."""
        if not task_ids:
            return {}
        found = await self._host.store.read(find_each, task_ids)
        return {task_id: _status(task_id, record) for task_id, record in found.items()}

    async def list(self, before: int | None = None, limit: int = 50) -> tuple[list[TaskLine], bool]:
        """Newest first, and whether others may follow."""
        page = await self._host.store.read(
            page_of_records, ("compute.run.", "compute.run.~"), STATUSES, before or NEWEST, limit
        )
        return [self._line(record) for record in page.records], page.more

    def _line(self, record: Record) -> TaskLine:
        task = record.payload if isinstance(record.payload, dict) else {}
        task_id = str(task.get("task_id") or self._host.store.ids.to_text(record.id))
        return TaskLine(
            id=task_id,
            job=record.id,
            status=_status(task_id, record),
            script_path=str(task.get("script_path", "")),
            task_type=next(task_type for task_type, kind in KINDS.items() if kind == record.kind),
            attempts=record.attempt,
            accepted_at=record.accepted_at,
            completed_at=record.settled_at,
        )

    async def cancel(self, identifier: UUID | str) -> str:
        _, record = await self._find(identifier)
        verdict = await self._host.store.submit(CANCEL, record.id)
        if verdict == "finished":
            raise IllegalTransition(f"task {identifier} is over already; there is nothing to cancel")
        return verdict.upper()

    async def _find(self, identifier: UUID | str) -> tuple[str, Record]:
        """Its id and its job, by the id of either."""
        store = self._host.store
        found = await store.read(find_task, str(identifier)) if is_id(str(identifier)) else None
        if found is not None and found[1].kind in KINDS.values():
            return found
        job = store.ids.from_uuid(identifier)
        if found is None and job is not None and made_at(job) < store.clock.now() - self._history_millis:
            raise Expired(f"task {identifier} is older than spine.history_days; its result was dropped")
        raise NotFound(f"no task {identifier}; it was never accepted here, or its history was pruned")

    def stats(self) -> dict[str, Any]:
        """The counts of this process's engine, by component; empty before its first task."""
        if self._engine is None:
            return {}
        metrics = self._engine.metrics()
        for worker in metrics.get("workers", {}).values():
            worker |= usage_of(worker["pid"])
        return {"metrics": metrics, "status": self._engine.status()}

    def gauges(self) -> Iterable[GaugePoint]:
        """The same for /metrics."""
        return [] if self._engine is None else points(self._engine.metrics())


def _status(task_id: str, record: Record) -> TaskStatus:
    result = to_result(task_id, record)
    if result is not None:
        return result.status
    return TaskStatus.RUNNING if record.status == "running" else TaskStatus.PENDING


def to_result(task_id: str, record: Record) -> Result | None:
    """A finished job as a result."""
    if record.settled_at is None:
        return None
    if record.status == "done":
        return Result.from_dict(record.detail)
    ending = _ending(record)
    return Result(
        task_id,
        ending.status,
        error=ending.error,
        started_at=record.started_at,
        completed_at=record.settled_at,
        stdout=ending.stdout,
        stderr=ending.stderr,
        attempts=record.attempt,
        worker_id=ending.worker,
        traceback=ending.traceback or None,
    )


def _ending(record: Record) -> TaskEnd:
    if record.status == "cancelled":
        reason = record.detail.get("reason") if isinstance(record.detail, dict) else None
        return TaskEnd(TaskStatus.CANCELLED, reason or "cancelled before it ran")
    return read_cause(str(record.detail))


def _cluster(options: EngineOptions, address: str) -> Backend | None:
    if not address:
        return None
    from ulak.compute.ray.backend import RayBackend  # its library is an extra

    return RayBackend(options, address)
