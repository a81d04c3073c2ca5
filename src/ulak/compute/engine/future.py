"""A concurrent.futures.Future that costs next to nothing until it is waited for in a way that needs more.

The stdlib's makes a lock and a condition at once; with tiny tasks that is a large part of their price. Here the
condition is made when somebody asks for it (callbacks, `wait`, a second waiter). One atomic dictionary operation
decides whether the outcome or the condition came first, so an outcome without a condition needs no lock, and one with
it takes the stdlib's own path. The first thread in `result()` parks on a bare lock.
"""

from __future__ import annotations

import contextlib
import threading
from _thread import LockType, allocate_lock
from concurrent.futures import Future as StdFuture
from concurrent.futures._base import CANCELLED, FINISHED, PENDING, RUNNING
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from ulak.compute.engine.backend import Backend
    from ulak.compute.engine.work import Work

_SETTLED = object()  # stands where the condition would be: the outcome came first

Value = TypeVar("Value", default=Any)


class Future(StdFuture[Value]):
    _state = PENDING
    _result: Any = None
    _exception: BaseException | None = None
    _parked: LockType | None = None
    work: Work | None = None  # while it is not over
    backend: Backend | None = None  # where the work is

    def __init__(self) -> None:  # the stdlib's would make the condition
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        made = self.__dict__.get("_settling")
        if made is None:
            made = self.__dict__.setdefault("_settling", threading.Condition())
        if made is _SETTLED:
            self._state = FINISHED  # the outcome is in place; its state may be a moment behind
            made = self.__dict__.setdefault("_after", threading.Condition())
        return made  # type: ignore[no-any-return]

    def settle(self, value: Any, error: BaseException | None = None) -> None:
        """Set the outcome, from the engine's side."""
        self._result, self._exception = value, error
        if self.__dict__.setdefault("_settling", _SETTLED) is _SETTLED:
            self._state = FINISHED
            self._wake()
        elif error is None:
            self.set_result(value)
        else:
            self.set_exception(error)

    def set_result(self, result: Any) -> None:
        super().set_result(result)
        self._wake()

    def set_exception(self, exception: BaseException | None) -> None:
        super().set_exception(exception)
        self._wake()

    def _wake(self) -> None:
        if self._parked is not None:
            with contextlib.suppress(RuntimeError):  # its thread has given up waiting
                self._parked.release()

    def result(self, timeout: float | None = None) -> Value:
        if self._state not in (PENDING, RUNNING) or self._park(timeout):
            if self._state == FINISHED and self._exception is None:
                return self._result  # type: ignore[no-any-return]
            timeout = None
        return super().result(timeout)

    def _park(self, timeout: float | None) -> bool:
        """Wait on a bare lock; True when it is over, False when another thread waits so already."""
        lock = allocate_lock()
        lock.acquire()
        if self.__dict__.setdefault("_parked", lock) is not lock:
            return False
        if self.__dict__.get("_settling") is _SETTLED or self._state not in (PENDING, RUNNING):
            return True  # it came between our look and our parking
        if lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            return True
        raise TimeoutError

    def mark_running(self) -> None:
        """Called under the engine's lock, which also guards cancelling, so no condition is needed."""
        self._state = RUNNING

    def cancel(self) -> bool:
        """Only a task that has not been handed to a worker can be cancelled here; `Engine.cancel` ends running ones."""
        work, backend = self.work, self.backend
        if work is None or backend is None:
            return self._cancel_bare()
        backend.cancel(work, running=False)
        return self.cancelled()

    def _cancel_bare(self) -> bool:
        """A future that no engine made, or whose work is over."""
        cancelled = super().cancel()
        self._wake()
        return cancelled

    def set_cancelled(self) -> None:
        """Become cancelled and wake every waiter; the engine has already let go of the task."""
        with self._condition:
            self._state = CANCELLED
            self._condition.notify_all()
        self.set_running_or_notify_cancel()
        self._invoke_callbacks()  # type: ignore[attr-defined]
        self._wake()
