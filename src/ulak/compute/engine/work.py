"""One accepted piece of work, as the parent keeps it until it has its final outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.worker.parcel import Packed, Parcel

if TYPE_CHECKING:
    from ulak.compute.pool.worker_handle import WorkerHandle

_log = logging.getLogger(__name__)

# In queue, in queue but apart (a suspect, or waiting for its next attempt), at a worker, over.
QUEUED, ASIDE, SENT, FINAL = range(4)


# What a script leaves beside its value: when it started and ended, its stdout and stderr. As it came from the worker.
ScriptTrace = tuple[int, int, str, str]


class Outcome(NamedTuple):
    """How a piece of work ended. `blob` is the pickled value or exception; `error` is ours, when no run can tell."""

    status: TaskStatus
    blob: Packed = b""
    error: Exception | None = None
    trace: ScriptTrace | None = None
    attempts: int = 1
    worker: str | None = None


class Options(NamedTuple):
    """How a piece of work is to be treated."""

    task_type: TaskType = TaskType.CPU_BOUND
    priority: int = 2
    timeout_seconds: float | None = None
    max_retries: int = 3
    retries_failures: bool = False  # an exception is tried again too, not only a crash


class Work:
    __slots__ = (
        "attempts",
        "body",
        "finish",
        "future",
        "label",
        "number",
        "options",
        "since",
        "state",
        "suspect",
        "worker",
    )

    def __init__(
        self, number: int, body: tuple[Any, ...], options: Options, future: Any, finish: Callable[[Work, Outcome], None]
    ) -> None:
        self.number = number
        self.body = body  # the message without its number
        self.options = options
        self.future = future
        self.finish = finish
        self.state = QUEUED
        self.since = monotonic()
        self.attempts = 0  # runs that were charged
        self.suspect = False  # its worker died: it runs alone from now on
        self.worker: WorkerHandle | None = None
        self.label: str | None = None  # a task's id, to name it in messages

    def message(self) -> tuple[Any, ...]:
        if self.label is None:
            return (self.number, *self.body)
        return (self.number, *self.body, self.attempts + 1)  # a script may know which attempt it is

    def release(self) -> None:
        """Its worker has let go of the arguments' shared memory."""
        if isinstance(self.body[-1], Parcel):
            self.body[-1].segment.clean += 1

    @property
    def name(self) -> str:
        return f"task {self.label or self.number}"


Finished = list[tuple[Work, Outcome]]


def deliver(finished: Finished) -> None:
    """Deliver outcomes, outside every lock."""
    for work, outcome in finished:
        try:
            work.finish(work, outcome)
        except Exception:  # noqa: BLE001 - one task's trouble must not end the thread that serves all
            _log.exception("%s is over, but its outcome could not be delivered", work.name)
