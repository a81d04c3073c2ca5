"""joblib's Parallel on our workers: `register()`, then `joblib.parallel_config(backend="ulak")`."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from ulak.compute.engine.executor import Executor
from ulak.compute.engine.future import Future
from ulak.compute.pool.cpus import usable_cpus


class SharedExecutor:
    """The one executor that all calls of Parallel in a process use.

    Another number of workers replaces it; calls that are under way keep theirs, and the last of them shuts it down.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0  # a fork of the process has workers of its own
        self._workers = 0
        self._current: Executor | None = None
        self._borrowed: Counter[Executor] = Counter()

    def borrow(self, workers: int) -> Executor:
        with self._lock:
            if self._owner != os.getpid():
                self._owner, self._current, self._borrowed = os.getpid(), None, Counter()
            if self._current is None or self._workers != workers:
                replaced, self._current, self._workers = self._current, Executor(workers), workers
                self._end_unused(replaced)
            self._borrowed[self._current] += 1
            return self._current

    def give_back(self, executor: Executor) -> None:
        with self._lock:
            self._borrowed[executor] -= 1
            self._end_unused(executor)

    def _end_unused(self, executor: Executor | None) -> None:
        if executor is not None and executor is not self._current and self._borrowed[executor] <= 0:
            del self._borrowed[executor]
            executor.shutdown(wait=False)


_shared = SharedExecutor()


class JoblibBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, executor: Executor | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._given = self._executor = executor
        self._unfinished: set[Future] = set()

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        self.parallel = parallel
        workers = self.effective_n_jobs(n_jobs)
        if self._given is None:
            self._let_go()
            self._executor = _shared.borrow(workers)
        return workers

    def effective_n_jobs(self, n_jobs: int) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return n_jobs if n_jobs > 0 else max(1, usable_cpus() + 1 + n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Future:
        assert self._executor is not None
        future = self._executor.submit(func)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future) -> Any:
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """joblib gives up, after an error or a timeout: what waits is dropped and what runs is ended, at once."""
        for future in list(self._unfinished):
            if future.work is not None and future.backend is not None:
                future.backend.cancel(future.work, running=True)

    def terminate(self) -> None:
        """The executor stays for the next call; this one's work does not."""
        self.abort_everything()
        if self._given is None:
            self._let_go()

    def _let_go(self) -> None:
        if self._executor is not None:
            _shared.give_back(self._executor)
            self._executor = None


def register() -> None:
    register_parallel_backend("ulak", JoblibBackend)
