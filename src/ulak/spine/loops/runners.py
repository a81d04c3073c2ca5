"""Runners reuse tasks for async handlers; the thread lane runs blocking ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from ulak.spine.handler import Handler
from ulak.spine.job import Job

T = TypeVar("T")

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
        """Return the items that have not been started, and forget them."""
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


def _call(handler: Handler, job: Job) -> Any:
    try:
        return handler.call(job)
    except StopIteration as error:  # a future can't hold one, so its job would wait for ever
        raise RuntimeError("the handler raised StopIteration") from error


class ThreadLane:
    """`around` is entered while handlers are on threads; it must allow to be entered by several at once."""

    def __init__(self, threads: int, around: AbstractContextManager[None] | None = None) -> None:
        self._around = around or nullcontext()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ulak-thread")

    async def run(self, handler: Handler, job: Job) -> Any:
        """Run a handler on a thread. It can't be stopped, so a cancelled attempt keeps its place until it ends."""
        with self._around:
            call = self._pool.submit(copy_context().run, _call, handler, job)
            result = asyncio.wrap_future(call)
            try:
                return await asyncio.shield(result)
            except asyncio.CancelledError:
                if not call.cancel():
                    await asyncio.wait([result])
                raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
