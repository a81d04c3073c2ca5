"""The local backend: accepts work on the caller's thread, hears the workers on its own.

When a worker is idle, work is sent from the caller's thread too. One lock guards all parts; nobody else's code is ever
called while it is held. Each part uses only those to its right:

    Dispatcher -> Supervisor, Reports -> Queues -> Fleet -> Timetable, Listener
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from ulak.compute import decide
from ulak.compute.engine import metrics
from ulak.compute.engine.backend import Shutdown
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import ASIDE, QUEUED, SENT, Finished, Outcome, Work, deliver
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.pool.closing import Closing
from ulak.compute.pool.fleet import Fleet
from ulak.compute.pool.listener import HANGUP, WRITABLE, Listener
from ulak.compute.pool.queues import Queues
from ulak.compute.pool.reports import Reports
from ulak.compute.pool.supervisor import Supervisor, fate_of
from ulak.compute.pool.timetable import Timetable
from ulak.compute.pool.worker_handle import WorkerHandle

_dispatchers: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """Worker processes on this machine."""

    loads_main = True

    def __init__(self, options: EngineOptions, initializer: bytes | None = None) -> None:
        self.lock = threading.Lock()
        self._listener = Listener()
        self.timers = Timetable(self._listener.wake)
        self.fleet = Fleet(options, initializer, self._listener, self.timers)
        self.queues = Queues(options, self.fleet, self._listener)
        self._reports = Reports(options, self.fleet, self.timers, self.queues)
        self.supervisor = Supervisor(options, self.fleet, self.timers, self.queues)
        self._waiters: deque[Callable[[], None]] = deque()  # wait until a queue is not full
        self._over = False
        self._opened, self._emptied = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ulak-compute", daemon=True)
        self._thread.start()
        self._opened.wait()  # a fork of this process during the start would keep the start from ending
        _dispatchers.add(self)

    # -- on the caller's thread ------------------------------------------------------------------------------------

    def submit(self, work: Work) -> None:
        """Accept, or raise: Refused when the queue is full, Unavailable when the engine is closing."""
        with self.lock:
            self.queues.accept(work)
            if self.queues.timed:
                self.supervisor.set_deadlines()

    def cancel(self, work: Work, *, running: bool) -> bool:
        """Let go of work that waits; with `running`, end it at its worker too. False when it was too late."""
        with self.lock:
            if work.state in (QUEUED, ASIDE):
                self.queues.withdraw(work)
            elif work.state == SENT and running:
                self.supervisor.pull(work, "cancelled")
                self.queues.conclude(work)
            else:
                return False
        work.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts))
        return True

    def cancel_waiting(self) -> int:
        finished: Finished = []
        with self.lock:
            for work in self.queues.take_all():
                self.queues.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts), finished)
        deliver(finished)
        return len(finished)

    def when_free(self, callback: Callable[[], None]) -> None:
        """Call once, from the dispatcher's thread, when a queue may not be full any more."""
        with self.lock:
            self._waiters.append(callback)
        self.wake()

    def is_running(self, work: Work) -> bool:
        with self.lock:
            worker = work.worker
            return work.state == SENT and worker is not None and work.number in worker.marks.running()

    def metrics(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            return metrics.of_pool(self.queues, self.fleet)

    def status(self) -> dict[str, str]:
        with self.lock:
            return metrics.status_of(self.queues, self.fleet, over=self._over)

    def drop(self) -> None:
        with self.lock:
            self.queues.total_dropped += 1

    def wake(self) -> None:
        self._listener.wake()

    # -- the end -----------------------------------------------------------------------------------------------------

    def close(self, drain_seconds: float | None) -> Shutdown:
        with self.lock:
            self.queues.closing = True
            if not self.queues.unfinished:
                self.queues.drained.set()
        self.wake()
        if not self._thread.is_alive():
            return Shutdown(True)
        return Closing(self).run(drain_seconds)

    def wait_empty(self, until: float) -> None:
        """Until all workers have gone, or the time is over."""
        self._emptied.wait(max(0.0, until - monotonic()))

    def stop(self) -> None:
        """End the thread, and with the fork server every process that is left."""
        self._over = True
        self.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # -- on the dispatcher's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Outcomes are delivered last before sleeping: a waiting thread then wakes up and wants the interpreter."""
        try:
            self.fleet.open_forkserver()
        finally:
            self._opened.set()
        self.supervisor.start_patrol()
        pause = 0.0
        while not self._over:
            finished: Finished = []
            for worker, events in self._listener.poll(pause):
                if worker is None:
                    self._hear_forkserver(finished)
                else:
                    self._hear(worker, events, finished)
            self._keep_house(finished)
            with self.lock:
                pause = self._pause()
            deliver(finished)
        self.fleet.close_forkserver()
        self._listener.close()

    def _pause(self) -> float:
        """Sleep until the next timer, or until the silence of a worker with work ahead is suspicious."""
        now = monotonic()
        pauses = [self._recall_at(worker) - now for worker in self.queues.ahead if not worker.recalled]
        return max(0.0, min([self.timers.pause(now), *pauses]))

    def _hear(self, worker: WorkerHandle, events: int, finished: Finished) -> None:
        with self.lock:
            if events & WRITABLE and worker.flush():
                self._listener.expect_writable(worker, False)
            if not self._reports.take(worker, finished) and events & HANGUP:
                self._listener.detach(worker)
                self.fleet.kill_later(worker)  # usually it is dead and the fork server says so; if not, it is useless
            if self.queues.timed:
                self.supervisor.set_deadlines()

    def _hear_forkserver(self, finished: Finished) -> None:
        news = self.fleet.news()
        with self.lock:
            if news is None:
                self._lose_forkserver(finished)
            for verb, number, detail in news or ():
                self._note(verb, number, detail, finished)

    def _note(self, verb: str, number: int, detail: Any, finished: Finished) -> None:
        if verb == "born":
            self.supervisor.note_born(number, detail)
            return
        worker = self.fleet.find_token(number) if verb == "unborn" else self.fleet.find(number)
        if worker is None:
            return
        if verb == "stopped":
            self.supervisor.note_stopped(worker)
        elif verb == "continued":
            self.supervisor.note_continued(worker)
        else:
            cause = f"could not be started: {detail}" if verb == "unborn" else fate_of(detail)
            self._reports.take_rest(worker, finished)
            self.supervisor.bury(worker, cause, finished)

    def _lose_forkserver(self, finished: Finished) -> None:
        self.fleet.lose_forkserver()
        for worker in self.fleet.everyone():
            self._reports.take_rest(worker, finished)
            self.supervisor.bury(worker, "died with the fork server", finished)
        if not self.fleet.closing:
            self.fleet.open_forkserver()

    def _keep_house(self, finished: Finished) -> None:
        now = monotonic()
        if not (self.queues.ahead or self._waiters or self._listener.woken or self.timers.is_due(now)):
            return
        with self.lock:
            self._listener.woken = False
            self.timers.run(now, finished)
            self.supervisor.keep_strength()
            for worker in self.queues.ahead:
                if not worker.recalled and now >= self._recall_at(worker):
                    worker.recall()
            self.queues.feed_all()
            self.supervisor.set_deadlines()
            waiters = self._admitted()
            if self.fleet.closing and not self.fleet.everyone():
                self._emptied.set()
        for callback in waiters:
            callback()

    def _recall_at(self, worker: WorkerHandle) -> float:
        idle = next(iter(self.queues.idle[worker.kind]), None) if worker.kind is not None else None
        return decide.recall_at(worker.heard_at, worker.pace, None if idle is None else idle.idle_since)

    def _admitted(self) -> list[Callable[[], None]]:
        """Call all waiting submitters when a queue is not full; those that come too late wait again."""
        if not self._waiters or not (self.queues.closing or any(self.queues.has_free(kind) for kind in TaskType)):
            return []
        waiters, self._waiters = list(self._waiters), deque()
        return waiters


def _disown() -> None:
    """In a fork of the parent: the workers are not ours, and a word to them would garble the parent's."""
    for dispatcher in list(_dispatchers):
        dispatcher.lock = threading.Lock()  # perhaps held by a thread that is not here
        dispatcher.queues.closing = True


os.register_at_fork(after_in_child=_disown)
