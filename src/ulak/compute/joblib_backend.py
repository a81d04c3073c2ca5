"""joblib's Parallel on our workers: `register()`, then `joblib.parallel_config(backend="ulak")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from ulak.compute.executor import Executor
from ulak.compute.future import Future


class JoblibBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, executor: Executor | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._given = executor
        self._executor = executor

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        self.parallel = parallel
        workers = self.effective_n_jobs(n_jobs)
        if self._executor is None:
            self._executor = Executor(workers)
        return workers

    def effective_n_jobs(self, n_jobs: int) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        from ulak.compute.cpus import usable_cpus

        return n_jobs if n_jobs > 0 else max(1, usable_cpus() + 1 + n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Future:
        assert self._executor is not None
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future) -> Any:
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """joblib gives up on an error; what is on its way ends by itself."""

    def terminate(self) -> None:
        if self._given is None and self._executor is not None:
            self._executor.shutdown()
            self._executor = None


def register() -> None:
    register_parallel_backend("ulak", JoblibBackend)
