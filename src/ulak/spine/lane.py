"""Lanes: where a handler runs. Async on the loop, threads for blocking code, and a seam for processes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from ulak.spine.handler import Handler
from ulak.spine.job import Job

T = TypeVar("T")

# The store's writer needs the interpreter lock at every statement, and would wait Python's usual 5 ms for it each time.
SWITCH_SECONDS = 0.0005

# How many sleeping runners one turn of the loop wakes: enough to fan out, few enough that idle ones cost nothing.
_FAN_OUT = 16


class Runners(Generic[T]):
    """Reused tasks that take work from one queue.

    A runner goes on with the next item at once when a handler did not have to wait, so short work costs no task switch.
    """

    def __init__(self, run: Callable[[T, asyncio.Task[Any]], Awaitable[None]]) -> None:
        self._run = run
        self._waiting: deque[T] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._pumping = False
        self._closed = False

    def put(self, items: list[T]) -> None:
        self._waiting.extend(items)
        self._pump()

    def take_back(self) -> list[T]:
        """What has not been started."""
        left = list(self._waiting)
        self._waiting.clear()
        return left

    def _pump(self) -> None:
        self._pumping = False
        for _ in range(min(len(self._waiting), _FAN_OUT)):
            if self._idle:
                self._idle.pop().set_result(None)
            else:
                task = asyncio.get_running_loop().create_task(self._work())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if self._waiting and not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            while self._waiting:
                await self._run(self._waiting.popleft(), task)
            if self._closed:
                return
            sleeping = asyncio.get_running_loop().create_future()
            self._idle.append(sleeping)
            await sleeping

    def close(self) -> None:
        self._closed = True
        for task in list(self._tasks):
            task.cancel()


class Lane(Protocol):
    """Where handlers run that are not async."""

    async def run(self, handler: Handler, job: Job) -> Any: ...

    def close(self) -> None: ...


def _call(handler: Handler, job: Job) -> Any:
    try:
        return handler.call(job)
    except StopIteration as error:  # a future can't hold one, so its job would wait for ever
        raise RuntimeError("the handler raised StopIteration") from error


class _Haste:
    """While handlers are on threads, who waits for the interpreter lock gets it soon. At other times that costs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._usual_seconds = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_SECONDS)
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                sys.setswitchinterval(self._usual_seconds)


_haste = _Haste()  # one for all Ulaks of the process, as the interval is


class ThreadLane:
    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ulak-thread")

    async def run(self, handler: Handler, job: Job) -> Any:
        """A thread can't be stopped: who is cancelled still waits for its end, since its place is taken until then."""
        with _haste:
            call = self._pool.submit(_call, handler, job)
            result = asyncio.wrap_future(call)
            try:
                return await asyncio.shield(result)
            except asyncio.CancelledError:
                if not call.cancel():
                    await asyncio.wait([result])
                raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
