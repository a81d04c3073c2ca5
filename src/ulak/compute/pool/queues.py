"""Work that waits, the workers that are idle, and the passing of one to the other. Under the dispatcher's lock.

One queue per class, inside it one per priority, with a share for the lower ones.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures.process import BrokenProcessPool
from time import monotonic

from ulak.compute import decide
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import ASIDE, FINAL, QUEUED, SENT, Finished, Outcome, Work
from ulak.compute.model import PRIORITIES, TaskStatus, TaskType
from ulak.compute.pool.fleet import Fleet
from ulak.compute.pool.listener import Listener
from ulak.compute.pool.worker_handle import WorkerHandle
from ulak.errors import Refused, Unavailable
from ulak.spine.rotation import Rotation


class TaskQueue:
    """Cancelled work stays where it is and is skipped; `depth` counts only what still waits."""

    __slots__ = ("_levels", "_rotation", "delayed", "depth", "suspects")

    def __init__(self) -> None:
        self._levels: tuple[deque[Work], ...] = tuple(deque() for _ in PRIORITIES)
        self._rotation = Rotation()
        self.depth = 0
        self.suspects: deque[Work] = deque()  # not in the depth: they are few and were accepted before
        self.delayed: set[Work] = set()  # wait for their next attempt

    def put(self, work: Work) -> None:
        self._levels[work.options.priority].append(work)
        self.depth += 1

    def put_back(self, works: list[Work]) -> None:
        """Work that was not run goes back to the front."""
        for work in reversed(works):
            self._levels[work.options.priority].appendleft(work)
        self.depth += len(works)

    def take(self, count: int) -> list[Work]:
        taken: list[Work] = []
        while len(taken) < count and self.depth:
            work = self._next()
            if work.state == QUEUED:
                taken.append(work)
                self.depth -= 1
        return taken

    def _next(self) -> Work:
        waiting = [number for number in PRIORITIES if self._levels[number]]
        lower, favoured = self._rotation.favour(1, waiting)
        return self._levels[lower if favoured else waiting[0]].popleft()

    def drain(self) -> list[Work]:
        """Everything that waits, taken out."""
        places: tuple[deque[Work] | set[Work], ...] = (self.suspects, self.delayed, *self._levels)
        works = [work for place in places for work in place if work.state in (QUEUED, ASIDE)]
        for place in places:
            place.clear()
        self.depth = 0
        return works


class Queues:
    def __init__(self, options: EngineOptions, fleet: Fleet, listener: Listener) -> None:
        self._fleet, self._listener = fleet, listener
        self._capacity = options.input_capacity
        self.by_type = {kind: TaskQueue() for kind in TaskType}
        self.idle: dict[TaskType, dict[WorkerHandle, None]] = {kind: {} for kind in TaskType}
        self.ahead: set[WorkerHandle] = set()  # have more work than they can run at once
        self.wanted: set[TaskType] = set()  # classes that have had work
        self.timed: list[Work] = []  # given to a worker; the supervisor sets their deadlines
        self.unfinished = 0
        self.total_put = self.total_dropped = self.total_retried = self.total_crashed = self.total_finished = 0
        self.wait_seconds = self.run_seconds = 0.0
        self.broken: BrokenProcessPool | None = None  # no worker can be made ready
        self.closing = False  # takes no more work
        self.drained = threading.Event()

    # -- in ----------------------------------------------------------------------------------------------------------

    def accept(self, work: Work) -> None:
        """Give it to an idle worker at once, or let it wait. Raises Refused when the queue is full."""
        kind = work.options.task_type
        queue = self.by_type[kind]
        self._check_open(kind, queue)
        self.unfinished += 1
        self.total_put += 1
        self.total_retried += work.attempts > 0  # those before it are kept elsewhere
        if not queue.depth and not queue.suspects and (worker := self._free_worker(kind)):
            self.give(worker, [work])
            return
        queue.put(work)
        if kind not in self.wanted:
            self.wanted.add(kind)
            self._listener.wake()

    def _check_open(self, kind: TaskType, queue: TaskQueue) -> None:
        if self.broken is not None:
            raise self.broken
        if self.closing:
            raise Unavailable("the engine is shut down; make a new one")
        if self._capacity is not None and queue.depth >= self._capacity:
            raise Refused(f"{queue.depth} {kind.value} tasks wait already; submit later or raise input_capacity")

    def has_free(self, kind: TaskType) -> bool:
        return self._capacity is None or self.by_type[kind].depth < self._capacity

    # -- to the workers ----------------------------------------------------------------------------------------------

    def give(self, worker: WorkerHandle, works: list[Work]) -> None:
        now = monotonic()
        if not worker.inflight:
            worker.heard_at = now
            self.idle[works[0].options.task_type].pop(worker, None)
        for work in works:
            work.state, work.worker = SENT, worker
            self.wait_seconds += now - work.since
            worker.inflight[work.number] = work
            work.future.mark_running()
            if work.options.timeout_seconds is not None:
                self.timed.append(work)
        if not worker.write([work.message() for work in works]):
            self._listener.expect_writable(worker, True)
        worker.given += len(works)
        if worker.is_spent:
            self.retire(worker)
        elif len(worker.inflight) > worker.slots:
            self.ahead.add(worker)

    def feed_all(self) -> None:
        for kind in self.wanted:
            self.feed(kind)

    def feed(self, kind: TaskType) -> None:
        queue = self.by_type[kind]
        if queue.suspects:
            self._feed_suspects(kind, queue)
        if queue.depth:
            for worker, share in decide.share(queue.depth, self._open_workers(kind, queue)):
                if works := queue.take(share):
                    self.give(worker, works)

    def _free_worker(self, kind: TaskType) -> WorkerHandle | None:
        """A worker that could start it now: the longest idle, or the least loaded IO worker with a free thread."""
        idle = self.idle[kind]
        if idle:
            return next(iter(idle))
        if kind is TaskType.CPU_BOUND:
            return None
        free = [
            worker for worker in self._fleet.by_type.get(kind, ()) if worker.free > 0 and worker.load < worker.slots
        ]
        return min(free, key=lambda worker: worker.load, default=None)

    def _feed_suspects(self, kind: TaskType, queue: TaskQueue) -> None:
        while queue.suspects and (idle := self.idle[kind]):
            work = queue.suspects.popleft()
            if work.state == ASIDE:
                worker = next(iter(idle))
                worker.alone = True
                self.give(worker, [work])

    def _open_workers(self, kind: TaskType, queue: TaskQueue) -> list[WorkerHandle]:
        """The workers that may get work; while a suspect waits, the least loaded is left to become idle for it."""
        workers = [worker for worker in self._fleet.by_type.get(kind, ()) if worker.free > 0]
        if queue.suspects and workers:
            workers.remove(min(workers, key=lambda worker: worker.load))
        return workers

    # -- workers that come, rest and go ------------------------------------------------------------------------------

    def rest(self, worker: WorkerHandle) -> None:
        """A worker with nothing to do: to the idle ones, or out when it is retiring."""
        worker.alone = False
        self.ahead.discard(worker)
        if worker.retiring:
            self._fleet.dismiss(worker)
        elif worker.kind is not None:
            worker.idle_since = monotonic()
            self.idle[worker.kind][worker] = None

    def hold(self, worker: WorkerHandle) -> None:
        """Give it nothing more."""
        self.ahead.discard(worker)
        if worker.kind is not None:
            self.idle[worker.kind].pop(worker, None)

    def retire(self, worker: WorkerHandle) -> None:
        """The replacement comes first: the fleet's strength counts only workers that are not retiring."""
        worker.retiring = True
        self.hold(worker)
        self._listener.wake()
        if not worker.inflight:
            self._fleet.dismiss(worker)

    # -- back and out ------------------------------------------------------------------------------------------------

    def take_back(self, works: list[Work]) -> None:
        """Accepted work goes back to the front of its queue."""
        for work in works:
            work.state, work.worker = QUEUED, None
        if works:
            self.by_type[works[0].options.task_type].put_back(works)

    def take_all(self) -> list[Work]:
        """Everything that waits, taken out of the queues."""
        return [work for queue in self.by_type.values() for work in queue.drain()]

    def withdraw(self, work: Work) -> None:
        """Let go of work that waits; the queue skips it later."""
        if work.state == QUEUED:
            self.by_type[work.options.task_type].depth -= 1
        self.conclude(work)

    def finish(self, work: Work, outcome: Outcome, finished: Finished) -> None:
        self.conclude(work)
        finished.append((work, outcome))

    def conclude(self, work: Work) -> None:
        work.state = FINAL
        self.unfinished -= 1
        self.total_finished += 1
        if self.closing and not self.unfinished:
            self.drained.set()

    def break_with(self, cause: str, finished: Finished) -> None:
        """No worker can be made ready: as with the stdlib's pool, nothing that waits can run any more."""
        self.broken = BrokenProcessPool(cause)
        self._fleet.closing = True
        works = self.take_all() + [work for worker in self._fleet.workers() for work in worker.inflight.values()]
        for worker in self._fleet.workers():
            worker.inflight.clear()
        for work in works:
            self.finish(work, Outcome(TaskStatus.CRASHED, b"", self.broken), finished)
