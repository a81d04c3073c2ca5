"""The threads that read while the writers write, and how long a caller waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ulak.errors import Unavailable

R = TypeVar("R")

THREADS = 2
READ_SECONDS = 2.0  # for the database's part of it
ANSWER_SECONDS = 5.0  # for all of it, from the question to the answer

CLOSED = "the store is closed; open it again, or ask another instance"


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ReadPool:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ulak-read")
        self._under_way: set[Future[Any]] = set()

    async def run(self, read: Callable[[], R], late: Callable[[], None] = lambda: None) -> R:
        """Return the read's result; if it takes too long, raise Unavailable, and call `late` to free the thread."""
        future = self._begin(read)
        try:
            async with asyncio.timeout(ANSWER_SECONDS) as patience:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not patience.expired():  # the read itself raised it
                raise
            late()
            raise Unavailable(f"the database has not answered within {ANSWER_SECONDS:.0f} s; try again later") from None
        except asyncio.CancelledError:
            if future.cancelled() and not _is_cancelled():  # by close(); the caller goes on, and should know
                raise Unavailable(CLOSED) from None
            raise

    def _begin(self, read: Callable[[], R]) -> Future[R]:
        try:
            future = self._pool.submit(read)
        except RuntimeError:  # it takes nothing more
            raise Unavailable(CLOSED) from None
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    async def close(self, seconds: float) -> bool:
        """Wait for reads that are under way; return False if they do not end within the time."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        under_way = [asyncio.wrap_future(future) for future in list(self._under_way)]
        return not under_way or not (await asyncio.wait(under_way, timeout=seconds))[1]
