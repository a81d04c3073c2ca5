"""Pure decisions of the dispatcher: each worker's share, how far ahead to send, which task pays for a death."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

# Work sent ahead hides the pipe's latency; more would only wait behind a slow task.
_AHEAD_SECONDS = 0.002
_MAX_AHEAD = 512
# Up to this pace one task is sent ahead: a worker that must ask first idles for half a millisecond.
_ONE_AHEAD_SECONDS = 0.02
# A worker with work sent ahead is suspicious when it is silent for longer than this and than its tasks usually take.
_SILENCE_SECONDS = 0.005
_SILENT_PACES = 2.5
# A worker that is idle for longer gets nothing from the queue: it could do what another was sent ahead.
_IDLE_SECONDS = 0.001


class Loaded(Protocol):
    @property
    def load(self) -> int: ...

    @property
    def free(self) -> int: ...

    @property
    def idle_since(self) -> float: ...


AnyWorker = TypeVar("AnyWorker", bound=Loaded)


def share(waiting: int, workers: Sequence[AnyWorker]) -> list[tuple[AnyWorker, int]]:
    """Least loaded first, ties by longest idle; what waits is spread evenly, in one batch per worker."""
    order = sorted(
        (worker for worker in workers if worker.free > 0), key=lambda worker: (worker.load, worker.idle_since)
    )
    free, left = [worker.free for worker in order], min(waiting, sum(worker.free for worker in order))
    counts = [0] * len(order)
    while left:
        each = math.ceil(left / sum(count > 0 for count in free))
        for place, open_slots in enumerate(free):
            count = min(open_slots, each, left)
            counts[place] += count
            free[place] -= count
            left -= count
    return [(worker, count) for worker, count in zip(order, counts, strict=True) if count]


def ahead(pace_seconds: float | None) -> int:
    """How many tasks to send beyond those that run, from how long one takes."""
    if pace_seconds is None:
        return 1
    if pace_seconds > _ONE_AHEAD_SECONDS:
        return 0
    return max(1, min(_MAX_AHEAD, int(_AHEAD_SECONDS / max(pace_seconds, 1e-6))))


def recall_at(heard_at: float, pace_seconds: float | None, colleague_idle_since: float | None) -> float:
    """When to ask a silent worker for what was sent ahead: soon when a colleague has nothing to do."""
    soon = heard_at + _SILENCE_SECONDS
    late = max(soon, heard_at + _SILENT_PACES * min(pace_seconds or 0.0, _ONE_AHEAD_SECONDS))
    return late if colleague_idle_since is None else min(late, max(soon, colleague_idle_since + _IDLE_SECONDS))


def new_pace(old: float | None, seconds: float, count: int) -> float:
    """A moving average that follows a change within a few reports and rises at once."""
    latest = seconds / count
    return latest if old is None or latest > old * 8 else old * 0.75 + latest * 0.25


def charged(inflight: Sequence[int], running: Mapping[int, float]) -> list[int]:
    """Only what had started is charged for its worker's death; what was sent ahead is as innocent as what waits."""
    return [number for number in inflight if number in running]
