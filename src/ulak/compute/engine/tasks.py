"""Tasks that are not over: registered before they are accepted, gone when their result is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ulak.compute.engine.backend import Backend
from ulak.compute.engine.future import Future
from ulak.compute.engine.results import Results
from ulak.compute.engine.work import Options, Outcome, Work
from ulak.compute.model import Task, TaskStatus
from ulak.compute.worker.parcel import SEGMENT_BYTES, Packer
from ulak.compute.worker.protocol import SCRIPT
from ulak.compute.worker.script import locate
from ulak.errors import Duplicate

_KNOWN_PATHS = 10_000


class Tasks:
    def __init__(self, backend: Backend, results: Results, root: str | None, numbers: Iterator[int]) -> None:
        self._backend, self._results = backend, results
        self._root, self._numbers = root, numbers
        self._paths: dict[str, str] = {}
        self._packer = Packer(SEGMENT_BYTES)
        self._pending: dict[str, tuple[Task, Work]] = {}

    def register(self, task: Task) -> Work:
        """The task's work, known by its id from now on; `forget` it when it is not accepted."""
        work = self._work(task)
        if task.id in self._results:
            raise Duplicate(f"task {task.id} is over already; ask for its result, or create a new task")
        return self._known(task, work)

    def register_unkept(self, task: Task, attempt: int) -> Work:
        """One attempt of a task whose result is kept elsewhere."""
        work = self._work(task)
        work.finish, work.attempts = self._settle_unkept, attempt - 1
        return self._known(task, work)

    def _known(self, task: Task, work: Work) -> Work:
        if self._pending.setdefault(task.id, (task, work))[1] is not work:
            raise Duplicate(f"task {task.id} was submitted already; ask for its result, or create a new task")
        return work

    def forget(self, task: Task) -> None:
        self._pending.pop(task.id, None)

    def _work(self, task: Task) -> Work:
        body = SCRIPT, self._located(task.script_path), self._packer.pack(task.params), task.id
        options = Options(task.task_type, task.priority, task.timeout_seconds, task.max_retries, retries_failures=True)
        future = Future()
        work = Work(next(self._numbers), body, options, future, self._settle)
        work.label = task.id
        future.work, future.backend = work, self._backend
        return work

    def _located(self, script_path: str) -> str:
        """Once per path here, for an early refusal; the worker looks again whenever the file has changed."""
        if script_path not in self._paths:
            if len(self._paths) >= _KNOWN_PATHS:
                self._paths.clear()
            self._paths[script_path] = locate(script_path, self._root)
        return self._paths[script_path]

    def _settle(self, work: Work, outcome: Outcome) -> None:
        """The result is kept before the task stops being pending, so that nobody finds neither."""
        assert work.label is not None
        try:
            self._results.put(work.label, outcome)
        finally:
            self._pending.pop(work.label, None)
            work.future.work = None
            work.future.settle(None)

    def _settle_unkept(self, work: Work, outcome: Outcome) -> None:
        assert work.label is not None
        self._pending.pop(work.label, None)
        work.future.work = None
        work.future.settle(outcome)

    def wait(self, task_id: str, timeout: float | None) -> None:
        if future := self.future(task_id):
            try:
                future.result(timeout)
            except TimeoutError:
                raise TimeoutError(f"task {task_id} is not over after {timeout} s; ask again later") from None

    def future(self, task_id: str) -> Future | None:
        work = self.work(task_id)
        return None if work is None else work.future

    def work(self, task_id: str) -> Work | None:
        found = self._pending.get(task_id)
        return None if found is None else found[1]

    def status(self, task_id: str) -> TaskStatus | None:
        """Of a task that is not over."""
        work = self.work(task_id)
        if work is None:
            return None
        return TaskStatus.RUNNING if self._backend.is_running(work) else TaskStatus.PENDING

    def pending(self) -> Mapping[str, Task]:
        return {task_id: task for task_id, (task, _) in list(self._pending.items())}
