"""Births, deaths and deadlines of workers, and whom they are charged to. Called under the dispatcher's lock."""

from __future__ import annotations

import os
import signal
from functools import partial
from time import monotonic

from ulak.compute import decide
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import ASIDE, SENT, Finished, Outcome, Work
from ulak.compute.errors import Crashed, TimedOut
from ulak.compute.model import TaskStatus
from ulak.compute.pool.fleet import Fleet
from ulak.compute.pool.queues import Queues
from ulak.compute.pool.timetable import Timetable
from ulak.compute.pool.usage import usage_of
from ulak.compute.pool.worker_handle import WorkerHandle

_RECHECK_SECONDS = 0.02
_PATROL_SECONDS = 1.0


class Supervisor:
    def __init__(self, options: EngineOptions, fleet: Fleet, timers: Timetable, queues: Queues) -> None:
        self._options = options
        self._fleet, self._timers, self._queues = fleet, timers, queues

    # -- births and stops ------------------------------------------------------------------------------------------

    def keep_strength(self) -> None:
        if self._fleet.closing or self._fleet.paused:
            return
        for kind in self._queues.wanted:
            for worker in self._fleet.fill(kind):
                self._queues.rest(worker)
        if self._queues.wanted:
            self._fleet.stock()

    def note_born(self, token: int, pid: int) -> None:
        worker = self._fleet.born(token, pid)
        if worker is not None and worker.ending:
            self._fleet.end(worker, worker.ending)

    def note_stopped(self, worker: WorkerHandle) -> None:
        worker.stopped_at = monotonic()
        self._queues.hold(worker)
        self._timers.later(self._options.stopped_seconds, partial(self._end_if_stopped, worker, worker.stopped_at))

    def note_continued(self, worker: WorkerHandle) -> None:
        worker.stopped_at = None
        if not worker.inflight:
            self._queues.rest(worker)

    def _end_if_stopped(self, worker: WorkerHandle, since: float, finished: Finished) -> None:
        if worker.stopped_at == since:
            seconds = self._options.stopped_seconds
            worker.fate = f"was stopped (SIGSTOP) for {seconds:g} s and was ended by the engine"
            worker.kill(signal.SIGKILL)

    # -- deaths ----------------------------------------------------------------------------------------------------

    def bury(self, worker: WorkerHandle, cause: str, finished: Finished) -> None:
        """Charge what it was running, put the rest back, have another started."""
        fleet, queues = self._fleet, self._queues
        cause = worker.fate or cause
        guilty = decide.charged(list(worker.inflight), worker.marks.running()) if worker.ending is None else []
        for number in guilty:
            self._charge(worker.inflight.pop(number), worker, cause, finished)
        queues.take_back(list(worker.inflight.values()))
        queues.hold(worker)
        fleet.remove(worker, died_at_work=bool(guilty))
        if worker.ending is None and not worker.ready:
            queues.break_with(f"a worker's initializer ended its process: {worker.name} {cause}", finished)
        if pause := fleet.pause_seconds():
            fleet.paused = True
            self._timers.later(pause, self._unpause)

    def _unpause(self, finished: Finished) -> None:
        self._fleet.paused = False

    def _charge(self, work: Work, worker: WorkerHandle, cause: str, finished: Finished) -> None:
        work.attempts += 1
        work.worker = None
        self._queues.total_crashed += 1
        if work.attempts > work.options.max_retries:
            error = Crashed.after(work.name, work.attempts, f"{worker.name} {cause}")
            outcome = Outcome(TaskStatus.CRASHED, b"", error, None, work.attempts, worker.name)
            self._queues.finish(work, outcome, finished)
        else:
            self._queues.total_retried += 1
            work.suspect, work.state = True, ASIDE
            self._queues.by_type[work.options.task_type].suspects.append(work)

    # -- deadlines and cancelling ----------------------------------------------------------------------------------

    def set_deadlines(self) -> None:
        """For work that has just been given to workers."""
        timed, self._queues.timed = self._queues.timed, []
        for work in timed:
            seconds = work.options.timeout_seconds
            if seconds is not None and work.worker is not None:
                self._timers.later(seconds, partial(self._check_deadline, work, work.worker, seconds))

    def _check_deadline(self, work: Work, worker: WorkerHandle, seconds: float, finished: Finished) -> None:
        """The time counts from the start at the worker, which may be later than the sending."""
        if work.state != SENT or work.worker is not worker:
            return
        since = worker.marks.running().get(work.number)
        left = seconds if since is None else since + seconds - monotonic()
        if left > 0:
            self._timers.later(left, partial(self._check_deadline, work, worker, seconds))
            return
        work.attempts += 1
        self.pull(work, "timed out")
        error = TimedOut(f"{work.name} ran longer than {seconds:g} s on {worker.name} and was stopped")
        outcome = Outcome(TaskStatus.TIMED_OUT, b"", error, None, work.attempts, worker.name)
        self._queues.finish(work, outcome, finished)

    def pull(self, work: Work, reason: str) -> None:
        """Take work from its worker, whatever it is doing with it."""
        worker = work.worker
        assert worker is not None
        worker.inflight.pop(work.number, None)
        if work.number in worker.marks.running():
            self._release(worker, reason)
        else:
            worker.pulled.add(work.number)
            worker.recall()
            self._timers.later(_RECHECK_SECONDS, partial(self._recheck, worker, work.number, reason))

    def _recheck(self, worker: WorkerHandle, number: int, reason: str, finished: Finished) -> None:
        """Until the worker has said what became of it: one that is only starting may take it up much later."""
        if not worker.is_open or number not in worker.pulled:
            return
        if number in worker.marks.running():
            worker.pulled.discard(number)
            self._release(worker, reason)
        else:
            self._timers.later(_RECHECK_SECONDS, partial(self._recheck, worker, number, reason))

    def _release(self, worker: WorkerHandle, reason: str) -> None:
        """A process can be ended, a thread cannot: an IO worker is replaced and ends when its others are done."""
        if worker.threads and worker.inflight:
            self._queues.retire(worker)
            worker.doomed = True
        else:
            self._queues.hold(worker)
            self._fleet.end(worker, reason)

    # -- age and size ----------------------------------------------------------------------------------------------

    def start_patrol(self) -> None:
        if self._options.recycle_seconds is not None or self._options.recycle_bytes is not None:
            self._patrol([])

    def _patrol(self, finished: Finished) -> None:
        for worker in list(self._fleet.workers()):
            if not worker.retiring and self._is_old_or_fat(worker):
                self._queues.retire(worker)
        self._timers.later(_PATROL_SECONDS, self._patrol)

    def _is_old_or_fat(self, worker: WorkerHandle) -> bool:
        age, weight = self._options.recycle_seconds, self._options.recycle_bytes
        if age is not None and monotonic() - worker.born_at > age:
            return True
        return weight is not None and (usage_of(worker.pid)["memory_bytes"] or 0) > weight


def fate_of(status: int) -> str:
    """A worker's wait status in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = " (out of memory, perhaps)" if number == signal.SIGKILL else ""
        return f"was killed by {signal.Signals(number).name}{hint}"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"
