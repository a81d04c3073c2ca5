"""Results of tasks until somebody asks: bounded by count, bytes and age; spilled to disk before they are dropped.

They are kept as bytes and made anew for each question, so that asking twice gives the same answer, and no answer can be
changed through another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from marshal import dumps, loads

from ulak.clock import Clock, maybe_datetime
from ulak.compute.engine.calls import failure, unloadable
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.spill import Spill
from ulak.compute.engine.work import Outcome, ScriptTrace
from ulak.compute.errors import Expired, RemoteTraceback
from ulak.compute.model import Result, TaskStatus
from ulak.compute.worker.parcel import Packed, inline, unpack
from ulak.errors import NotFound

_REMEMBERED = 100_000  # names of dropped results, so that "expired" is not told as "unknown"
_STATUSES = {status.value: status for status in TaskStatus}  # asking the enumeration costs three times as much

# When it was put, and the outcome as bytes, its error as text; they never leave this process, so marshal will do.
# A plain tuple, because the garbage collector leaves those of plain things alone.
Kept = tuple[int, bytes]


class Results:
    def __init__(self, options: EngineOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0
        self._spill: Spill | None = None
        self._spilled_at: OrderedDict[str, int] = OrderedDict()
        self._dropped: OrderedDict[str, None] = OrderedDict()
        self._most, self._most_bytes = options.result_count, options.result_bytes
        self._lifetime = round(options.result_seconds * 1000)
        self.total_put = self.total_get = 0

    def put(self, task_id: str, outcome: Outcome) -> None:
        error = None if outcome.error is None else str(outcome.error)
        parts = (outcome.status.value, inline(outcome.blob), error, outcome.trace, outcome.attempts, outcome.worker)
        blob, now = dumps(parts), self._clock.now()
        with self._lock:
            self.total_put += 1
            self._kept[task_id] = now, blob
            self._bytes += len(blob)
            self._shrink(now)

    def get(self, task_id: str) -> Result:
        with self._lock:
            self._drop_old(self._clock.now() - self._lifetime)
            blob = self._find(task_id)
            self.total_get += 1
        word, value, error, trace, attempts, worker = loads(blob)
        return to_result(task_id, _STATUSES[word], value, error, trace, attempts, worker)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._kept or task_id in self._spilled_at

    def metrics(self) -> dict[str, int]:
        return {
            "total_put": self.total_put,
            "total_get": self.total_get,
            "in_memory": len(self._kept),
            "bytes": self._bytes,
            "spilled": len(self._spilled_at),
        }

    def status(self) -> str:
        return "spilling" if self._spilled_at else "holding" if self._kept else "empty"

    def close(self) -> None:
        with self._lock:
            if self._spill is not None:
                self._spill.close()
                self._spill = None

    def _find(self, task_id: str) -> bytes:
        if kept := self._kept.get(task_id):
            return kept[1]
        blob = self._spill.get(task_id) if self._spill is not None else None
        if blob is not None:
            return blob
        if task_id in self._dropped:
            raise Expired(f"the result of task {task_id} was dropped (age or bounds of the cache); run the task again")
        raise NotFound(f"there is no task {task_id} here; it was never submitted to this engine")

    def _shrink(self, now: int) -> None:
        while len(self._kept) > self._most or (self._bytes > self._most_bytes and self._kept):
            self._move_to_disk(*self._kept.popitem(last=False))
        self._drop_old(now - self._lifetime)

    def _move_to_disk(self, task_id: str, kept: Kept) -> None:
        at, blob = kept
        self._bytes -= len(blob)
        if not self._options.spill_bytes:
            self._remember(task_id)
            return
        try:
            gone = self._spilled().put(task_id, blob)
        except OSError:  # a full disk: dropped, as it would have been without one
            self._remember(task_id)
            return
        self._spilled_at[task_id] = at
        for name in gone:
            del self._spilled_at[name]
            self._remember(name)

    def _spilled(self) -> Spill:
        if self._spill is None:
            self._spill = Spill(self._options.spill_bytes, self._options.spill_directory)
        return self._spill

    def _drop_old(self, oldest_allowed: int) -> None:
        """Both are in the order of time, so only their beginnings need a look."""
        while self._spilled_at and next(iter(self._spilled_at.values())) < oldest_allowed:
            task_id, _ = self._spilled_at.popitem(last=False)
            if self._spill is not None:
                self._spill.forget(task_id)
            self._remember(task_id)
        while self._kept and next(iter(self._kept.values()))[0] < oldest_allowed:
            task_id, (_, blob) = self._kept.popitem(last=False)
            self._bytes -= len(blob)
            self._remember(task_id)

    def _remember(self, task_id: str) -> None:
        self._dropped[task_id] = None
        if len(self._dropped) > _REMEMBERED:
            self._dropped.popitem(last=False)


def to_result(
    task_id: str,
    status: TaskStatus,
    value: Packed,
    error: str | None,
    trace: ScriptTrace | None,
    attempts: int,
    worker: str | None,
) -> Result:
    """The parts of an outcome as its caller sees them."""
    data = traceback = None
    started_at, ended_at, stdout, stderr = trace or (None, None, "", "")
    if status is TaskStatus.SUCCESS:
        try:
            data = unpack(value)
        except BaseException as trouble:  # noqa: BLE001 - whatever a task raises is its outcome
            status, error = TaskStatus.FAILED, str(unloadable(f"task {task_id}", trouble))
    elif status is TaskStatus.FAILED:
        cause = failure(f"task {task_id}", value)
        error = f"{type(cause).__name__}: {cause}"
        traceback = cause.__cause__.text if isinstance(cause.__cause__, RemoteTraceback) else None
    elif status is TaskStatus.CANCELLED:
        error = f"task {task_id} was cancelled"
    return Result(
        task_id,
        status,
        data,
        error,
        maybe_datetime(started_at),
        maybe_datetime(ended_at),
        stdout,
        stderr,
        attempts,
        worker,
        traceback,
    )
