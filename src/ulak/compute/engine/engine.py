"""The engine: tasks and callables in, results and futures out. The backend decides what runs where."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import as_completed
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from ulak.clock import Clock, SystemClock
from ulak.compute.engine.admission import Admission
from ulak.compute.engine.backend import Backend, Shutdown
from ulak.compute.engine.calls import Calls, is_main_importable, settle_call
from ulak.compute.engine.future import Future
from ulak.compute.engine.mapping import Paces, map_calls
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.results import Results, to_result
from ulak.compute.engine.tasks import Tasks
from ulak.compute.engine.work import Options, Work
from ulak.compute.model import Result, Task, TaskStatus, TaskType, check_priority, check_timeout, to_type
from ulak.compute.pool.cpus import usable_cpus
from ulak.compute.pool.dispatcher import Dispatcher
from ulak.compute.worker import lazy_main

P = ParamSpec("P")
R = TypeVar("R")

FOREVER = math.inf  # for `close`: drain for as long as it takes
_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """`with Engine() as engine:`; leaving waits for what is unfinished, up to `drain_seconds`."""

    def __init__(
        self,
        options: EngineOptions | None = None,
        *,
        clock: Clock | None = None,
        backend: Backend | None = None,
        **changes: Any,
    ) -> None:
        lazy_main.refuse_while_loading()
        self.options = replace(options or EngineOptions(), **changes)
        self._backend = backend or Dispatcher(self.options)
        self._admission = Admission(self._backend, self.options.when_full)
        self._results = Results(self.options, clock or SystemClock())
        self._numbers = count(1)
        self._calls = Calls(by_value=not (self._backend.loads_main and is_main_importable()))
        self.paces = Paces()
        self._defaults = Options(max_retries=self.options.max_retries)
        self._tasks = Tasks(self._backend, self._results, self.options.script_root, self._numbers)
        self._forgotten = weakref.finalize(self, _end_later, self._backend)
        self._forgotten.atexit = False
        _open_engines.add(self)

    # -- tasks -----------------------------------------------------------------------------------------------------

    def submit_task(self, task: Task, *, wait_seconds: float | None = None) -> str:
        """Accept a task and return its id. `wait_seconds` bounds the wait while the queue is full."""
        work = self._tasks.register(task)
        try:
            self._admission.enter(work, wait_seconds)
        except BaseException:
            self._tasks.forget(task)
            raise
        return task.id

    def submit_tasks(self, tasks: Iterable[Task]) -> list[str]:
        return [self.submit_task(task) for task in tasks]

    def get_result(self, task_id: str, timeout: float | None = None) -> Result:
        """Return how the task ended; waits up to `timeout` seconds for it. A second call returns the same.

        TimeoutError: not over yet. NotFound: never submitted here. Expired: it was over, but the result is gone.
        """
        self._tasks.wait(task_id, timeout)
        return self._results.get(task_id)

    def completed(self, task_ids: Iterable[str], timeout: float | None = None) -> Iterator[Result]:
        """The results of a batch in the order in which they come."""
        unfinished: dict[Any, str] = {}
        future: Any
        for task_id in task_ids:
            if future := self._tasks.future(task_id):
                unfinished[future] = task_id
            else:
                yield self._results.get(task_id)
        for future in as_completed(unfinished, timeout):
            yield self._results.get(unfinished[future])

    def status_of(self, task_id: str) -> TaskStatus:
        return self._tasks.status(task_id) or self._results.get(task_id).status

    @property
    def pending_tasks(self) -> Mapping[str, Task]:
        return self._tasks.pending()

    # -- callables -------------------------------------------------------------------------------------------------

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a callable on a CPU worker; `using` gives other options."""
        return self.accept(self._defaults, function, args, kwargs)

    def map(self, function: Callable[..., R], *iterables: Iterable[Any], **how: Any) -> Iterator[R]:
        """Like the built-in map, on all workers. `progress=True` shows a bar, `chunk_size` fixes the batches' size."""
        return map_calls(self, self._defaults, function, iterables, **how)

    async def run(self, what: Task | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Await a task's Result or a callable's value. Cancelling the awaiting ends the work, running or not."""
        return await self.run_with(self._defaults, what, args, kwargs)

    def using(
        self,
        *,
        task_type: TaskType = TaskType.CPU_BOUND,
        priority: int = 2,
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
    ) -> Chosen:
        """The same verbs with options: `engine.using(task_type=TaskType.IO_BOUND, timeout_seconds=5).submit(f, 1)`."""
        retries = self.options.max_retries if max_retries is None else max_retries
        check_priority(priority)
        check_timeout(timeout_seconds)
        return Chosen(self, Options(to_type(task_type), priority, timeout_seconds, retries))

    def cancel(self, what: str | Future) -> bool:
        """End a task (by id) or a call (by future), also when it runs. False when it was over already."""
        work = self._tasks.work(what) if isinstance(what, str) else what.work
        return work is not None and self._backend.cancel(work, running=True)

    def cancel_waiting(self) -> int:
        """Cancel everything that no worker has; what runs goes on. Returns how many."""
        return self._backend.cancel_waiting()

    def accept(
        self, options: Options, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future:
        return self._accept(options, self._calls.one, function, args, kwargs)

    def accept_chunk(self, options: Options, function: Callable[..., Any], columns: list[Any]) -> Future:
        return self._accept(options, self._calls.chunk, function, columns)

    def _accept(self, options: Options, to_body: Callable[..., tuple[Any, ...]], *call: Any) -> Future:
        try:
            body = to_body(*call)
        except Exception as error:  # what cannot be pickled is the future's failure, as with the stdlib's executors  # noqa: BLE001
            return _failed(error)
        work = self._work(options, body)
        self._admission.enter(work)
        return work.future  # type: ignore[no-any-return]

    def _work(self, options: Options, body: tuple[Any, ...]) -> Work:
        future = Future()
        work = Work(next(self._numbers), body, options, future, settle_call)
        future.work = work
        future.backend = self._backend
        return work

    async def attempt(self, task: Task, number: int) -> Result:
        """One run of a task whose attempts and result are kept elsewhere: nothing of it stays here."""
        outcome = await self._admit(task, self._tasks.register_unkept(task, number))
        error = None if outcome.error is None else str(outcome.error)
        return to_result(task.id, outcome.status, outcome.blob, error, outcome.trace, outcome.attempts, outcome.worker)

    async def run_with(self, options: Options, what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(what, Task):
            await self._admit(what, self._tasks.register(what))
            return self._results.get(what.id)
        work = self._work(options, self._calls.one(what, args, kwargs))
        await self._admission.enter_async(work)
        return await self._finish(work)

    async def _admit(self, task: Task, work: Work) -> Any:
        try:
            await self._admission.enter_async(work)
        except BaseException:
            self._tasks.forget(task)
            raise
        return await self._finish(work)

    async def _finish(self, work: Work) -> Any:
        try:
            return await asyncio.wrap_future(work.future)
        except asyncio.CancelledError:
            self._backend.cancel(work, running=True)
            raise

    # -- the whole -------------------------------------------------------------------------------------------------

    @property
    def worker_count(self) -> int:
        return self.options.cpu_workers or usable_cpus()

    @property
    def waiting_submitters(self) -> int:
        """How many submitters wait because the input is full."""
        return self._admission.waiting

    def metrics(self) -> dict[str, dict[str, Any]]:
        """The counts of every component."""
        return {**self._backend.metrics(), "output_queue": self._results.metrics()}

    def status(self) -> dict[str, str]:
        """The state of every component."""
        return {**self._backend.status(), "output_queue": self._results.status()}

    def close(self, drain_seconds: float | None = None) -> Shutdown:
        """Take no more work, wait up to `drain_seconds` (or the setting) for the rest, then end everything."""
        seconds = self.options.drain_seconds if drain_seconds is None else drain_seconds
        _open_engines.discard(self)
        self._forgotten.detach()
        report = self._backend.close(None if seconds == FOREVER else seconds)
        self._results.close()
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0 if kind is not None and not issubclass(kind, Exception) else None)


class Chosen:
    """An engine's verbs with options chosen."""

    __slots__ = ("_engine", "_options")

    def __init__(self, engine: Engine, options: Options) -> None:
        self._engine, self._options = engine, options

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._engine.accept(self._options, function, args, kwargs)

    def map(self, function: Callable[..., R], *iterables: Iterable[Any], **how: Any) -> Iterator[R]:
        return map_calls(self._engine, self._options, function, iterables, **how)

    async def run(self, what: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self._engine.run_with(self._options, what, args, kwargs)


def _failed(error: Exception) -> Future:
    future = Future()
    future.settle(None, error)
    return future


def _end_later(backend: Backend) -> None:
    """An engine that nobody refers to any more still finishes what was submitted; then its workers go."""
    threading.Thread(target=backend.close, args=(None,), name="ulak-forgotten", daemon=True).start()


def _close_all() -> None:
    """An interpreter that exits with an open engine leaves no process behind."""
    for engine in list(_open_engines):
        with contextlib.suppress(Exception):
            engine.close()


atexit.register(_close_all)
