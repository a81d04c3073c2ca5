"""Takes what workers send: outcomes, work returned unstarted, readiness. Called under the dispatcher's lock."""

from __future__ import annotations

from functools import partial
from signal import SIGKILL
from time import monotonic
from typing import Any

from ulak.backoff import Backoff
from ulak.compute.engine.calls import failure
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import ASIDE, Finished, Outcome, Work
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.pool.fleet import Fleet
from ulak.compute.pool.queues import Queues
from ulak.compute.pool.timetable import Timetable
from ulak.compute.pool.worker_handle import WorkerHandle
from ulak.compute.worker.parcel import Packed
from ulak.compute.worker.protocol import CALL, CHUNK, OK, READINESS

_BY_NAME = (CALL, CHUNK)
_KNOWN_FUNCTIONS = 1024
_PRELOAD_SECONDS = 1.0  # an engine that lives shorter is spared the loading in its spare


class Reports:
    def __init__(self, options: EngineOptions, fleet: Fleet, timers: Timetable, queues: Queues) -> None:
        self._fleet, self._timers, self._queues = fleet, timers, queues
        self._retries = Backoff(first_seconds=options.retry_seconds, cap_seconds=60.0)
        self._known: set[bytes] = set()  # functions that have run well on a CPU worker

    def take(self, worker: WorkerHandle, finished: Finished) -> bool:
        """Read and apply what has arrived; False when nothing had."""
        try:
            reports = worker.read()
        except (ValueError, EOFError, TypeError):  # somebody in the worker wrote into our pipe
            self._fleet.detach(worker)
            worker.fate = "wrote into the engine's pipe and was ended by the engine"
            worker.kill(SIGKILL)
            return True
        for report in reports:
            self._apply(worker, report, finished)
        if worker.kind is not None:
            queue = self._queues.by_type[worker.kind]
            if queue.depth or queue.suspects:
                self._queues.feed(worker.kind)
        return bool(reports)

    def take_rest(self, worker: WorkerHandle, finished: Finished) -> None:
        """Everything that a dead worker still got out."""
        self._fleet.detach(worker)
        for report in worker.read_rest():
            self._apply(worker, report, finished)

    def _apply(self, worker: WorkerHandle, report: tuple[Any, ...], finished: Finished) -> None:
        busy, outcomes, returned = report
        queues = self._queues
        worker.heard_at, worker.recalled = monotonic(), False
        queues.run_seconds += busy
        for number, code, blob, trace in outcomes:
            work = worker.inflight.pop(number, None)
            if work is not None:
                worker.done += 1
                self._settle(work, worker, code, blob, trace, finished)
            elif number == READINESS:
                self._note_readiness(worker, code, blob, finished)
            else:
                worker.pulled.discard(number)
        if returned:
            self._take_back(worker, returned)
        elif worker.inflight or queues.by_type[worker.kind or TaskType.CPU_BOUND].depth:
            worker.learn(busy, len(outcomes))  # a pace is needed only where there is a choice of how much to send
        if not worker.inflight:
            queues.rest(worker)
        elif len(worker.inflight) <= worker.slots:
            queues.ahead.discard(worker)

    def _take_back(self, worker: WorkerHandle, returned: list[int]) -> None:
        self._queues.take_back([work for number in returned if (work := worker.inflight.pop(number, None))])
        worker.pulled.difference_update(returned)
        worker.given -= len(returned)
        worker.limit = worker.slots  # no more ahead of whatever takes so long

    def _note_readiness(self, worker: WorkerHandle, code: int, blob: Packed, finished: Finished) -> None:
        if code == OK:
            worker.ready = True
        else:
            self._queues.break_with(f"a worker's initializer failed: {failure('the initializer', blob)!r}", finished)

    def _settle(
        self, work: Work, worker: WorkerHandle, code: int, blob: Packed, trace: Any, finished: Finished
    ) -> None:
        work.attempts += 1
        if trace is True:
            work.release()
        if code == OK:
            status = TaskStatus.SUCCESS
            if work.body[0] in _BY_NAME and work.body[1] not in self._known and not worker.threads:
                self._preload_later(work.body[1])
        elif work.options.retries_failures and work.attempts <= work.options.max_retries:
            self._retry_later(work)
            return
        else:
            status = TaskStatus.FAILED
        self._queues.finish(
            work, Outcome(status, blob, None, None if trace is True else trace, work.attempts, worker.name), finished
        )

    def _preload_later(self, name: bytes) -> None:
        """A function has run well for the first time: have the spares load it, after a while."""
        if len(self._known) >= _KNOWN_FUNCTIONS:
            self._known.clear()
        self._known.add(name)
        self._timers.later(_PRELOAD_SECONDS, partial(self._fleet.preload, name))

    def _retry_later(self, work: Work) -> None:
        work.state, work.worker = ASIDE, None
        self._queues.by_type[work.options.task_type].delayed.add(work)
        self._queues.total_retried += 1
        self._timers.later(self._retries.delay_seconds(work.attempts), partial(self._requeue, work))

    def _requeue(self, work: Work, finished: Finished) -> None:
        self._queues.by_type[work.options.task_type].delayed.discard(work)
        if work.state == ASIDE:
            self._queues.take_back([work])
