"""A blocking client for scripts: the same Ulak on a loop and thread of its own. Not a second implementation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from ulak.app import Ulak
from ulak.errors import Conflict, Unavailable
from ulak.spine.job import NewJob, Record

R = TypeVar("R")


class BlockingUlak:
    """`with BlockingUlak("sqlite:///ulak.db") as ulak: ulak.enqueue("mail.send", {...})`.

    It enqueues and looks; it does not work.
    """

    def __init__(self, store: str | None = None, **options: Any) -> None:
        self._ulak = Ulak(store, work=False, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ulak-blocking", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.call(self._ulak.open)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._thread.is_alive():  # a forked child leaves the block too: nothing in it is the child's
            return
        try:
            self.call(self._ulak.close)
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, verb: Callable[..., Coroutine[Any, Any, R]], *args: Any, **kwargs: Any) -> R:
        """Run any of Ulak's async verbs to its end: `ulak.call(ulak.inner.jobs.list, kind="mail.send")`."""
        if not self._thread.is_alive():
            raise Unavailable("this Ulak is not open here; use it inside `with`, and open another one after a fork")
        if threading.current_thread() is self._thread:
            raise Conflict("this is the loop that would have to answer; await the verb of `inner` instead")
        return asyncio.run_coroutine_threadsafe(verb(*args, **kwargs), self._loop).result()

    @property
    def inner(self) -> Ulak:
        return self._ulak

    def enqueue(self, kind: str, payload: Any = None, **options: Any) -> int:
        return self.call(self._ulak.enqueue, kind, payload, **options)

    def enqueue_many(self, jobs: list[NewJob]) -> list[int]:
        return self.call(self._ulak.enqueue_many, jobs)

    def offer(self, kind: str, payload: Any = None, **options: Any) -> int | None:
        return self.call(self._ulak.offer, kind, payload, **options)

    def get(self, identifier: int) -> Record:
        return self.call(self._ulak.jobs.get, identifier)
