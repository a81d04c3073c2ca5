"""The engine as a concurrent.futures.Executor, for asyncio, Dask, joblib and everything else that takes one."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from ulak.compute.engine.calls import is_main_importable
from ulak.compute.engine.engine import FOREVER, Engine
from ulak.compute.engine.future import Future
from ulak.compute.engine.mapping import Columns, unchunk
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import Options
from ulak.compute.pool.cpus import usable_cpus
from ulak.compute.pool.dispatcher import Dispatcher
from ulak.compute.worker.parcel import Packer

P = ParamSpec("P")
R = TypeVar("R")

# Set when the main thread is over, before any atexit function runs: from then on the stdlib's executors take no work.
_leaving = threading.Event()
threading._register_atexit(_leaving.set)  # type: ignore[attr-defined]  # noqa: SLF001 - as concurrent.futures does


class Executor(concurrent.futures.Executor):
    """Worker processes that outlive the death of any of them.

    The arguments are ProcessPoolExecutor's, without `mp_context`: workers come from a fork server of the engine's own.
    A task whose worker died is run again up to `max_retries` times; 0 says that a second run would do harm.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        max_retries: int = 3,
    ) -> None:
        if max_workers is not None:
            _check_count("max_workers", max_workers, "must be greater than 0")
        if max_tasks_per_child is not None:
            _check_count("max_tasks_per_child", max_tasks_per_child, "must be >= 1")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers or usable_cpus()  # Dask's local scheduler reads it
        self._defaults = Options(max_retries=max_retries)
        self._is_shut_down = False
        self._ending: threading.Thread | None = None
        options = EngineOptions(
            cpu_workers=self._max_workers,
            recycle_tasks=max_tasks_per_child,
            input_capacity=None,
            max_retries=max_retries,
        )
        opening = (
            None if initializer is None else Packer(by_value=not is_main_importable()).dump((initializer, initargs))
        )
        self._engine = Engine(options, backend=Dispatcher(options, opening))

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        self._check_open()
        return self._engine.accept(self._defaults, fn, args, kwargs)

    def _check_open(self) -> None:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if _leaving.is_set():
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **more: Any,
    ) -> Iterator[Any]:
        """As the stdlib's: everything is submitted at once, and `timeout` counts from this call."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1 or more:
            return super().map(fn, *iterables, timeout=timeout, **more)
        return self._map_chunks(fn, Columns(iterables), timeout, chunksize)

    def _map_chunks(self, fn: Callable[..., Any], calls: Columns, timeout: float | None, size: int) -> Iterator[Any]:
        self._check_open()
        chunks: list[Future] = []
        while chunk := calls.take(size):
            chunks.append(self._engine.accept_chunk(self._defaults, fn, chunk))
        return unchunk(fn, chunks, timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        first, self._is_shut_down = not self._is_shut_down, True
        if cancel_futures:
            self._engine.cancel_waiting()
        if first:
            self._ending = threading.Thread(target=self._engine.close, args=(FOREVER,), name="ulak-shutdown")
            self._ending.start()
        if wait and self._ending is not None:
            self._ending.join()


def _check_count(name: str, value: object, bound: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer")
    if value < 1:
        raise ValueError(f"{name} {bound}")
