"""The workers: how many of each class, the spare, births, ends, replacements. Called under the dispatcher's lock."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial
from itertools import count
from time import monotonic

from ulak.backoff import Backoff
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import Finished
from ulak.compute.model import TaskType
from ulak.compute.pool.cpus import usable_cpus
from ulak.compute.pool.listener import Listener
from ulak.compute.pool.preload import Preload
from ulak.compute.pool.process import ForkserverLink
from ulak.compute.pool.timetable import Timetable
from ulak.compute.pool.worker_handle import WorkerHandle
from ulak.compute.worker.runner import Role

_BARREN_SECONDS = 1.0  # a worker that dies younger, without having begun a task, says that starting is what fails
_PREFIX = {TaskType.CPU_BOUND: "cpu", TaskType.IO_BOUND: "io"}


class Fleet:
    def __init__(
        self, options: EngineOptions, initializer: bytes | None, listener: Listener, timers: Timetable
    ) -> None:
        self._options, self._initializer = options, initializer
        self._listener, self._timers = listener, timers
        self._targets = {
            TaskType.CPU_BOUND: options.cpu_workers or usable_cpus(),
            TaskType.IO_BOUND: options.io_workers,
        }
        self._tokens = count(1)
        self._by_token: dict[int, WorkerHandle] = {}
        self._by_pid: dict[int, WorkerHandle] = {}
        self._spares: list[WorkerHandle] = []
        self._barren = 0
        self._preload = Preload(is_on=initializer is None)
        self._patience = Backoff(first_seconds=0.05, cap_seconds=5.0, jitter=0.0)
        self._forkserver: ForkserverLink | None = None
        self._forkserver_descriptor = -1
        self.by_type: dict[TaskType, list[WorkerHandle]] = {}
        self.restarts = 0
        self.paused = False  # after too many deaths at birth
        self.closing = False  # starts no more workers

    # -- the fork server -------------------------------------------------------------------------------------------

    def open_forkserver(self) -> None:
        """On the dispatcher's thread: the kernel ties the fork server's life to the thread that starts it."""
        self._forkserver = ForkserverLink()
        self._forkserver_descriptor = self._forkserver.fileno()
        self._listener.add(self._forkserver_descriptor)

    def close_forkserver(self) -> None:
        for worker in self.everyone():
            self._listener.detach(worker)
            worker.hang_up()
        if self._forkserver is not None:
            self._forkserver.close()

    def lose_forkserver(self) -> None:
        """It died, and the kernel ended its workers with it; what they had started is ended here."""
        self._listener.remove(self._forkserver_descriptor)
        for worker in self.everyone():
            if worker.pid is not None:
                with contextlib.suppress(OSError):
                    os.killpg(worker.pid, signal.SIGKILL)
        if self._forkserver is not None:
            self._forkserver.close()
            self._forkserver = None

    def news(self) -> list[tuple[str, int, int]] | None:
        """Births, deaths and stops since the last call; None when the fork server is gone."""
        return self._forkserver.hear() if self._forkserver is not None else []

    # -- births ----------------------------------------------------------------------------------------------------

    def fill(self, kind: TaskType) -> list[WorkerHandle]:
        """Bring a class to its strength; returns its new workers."""
        members = self.by_type.setdefault(kind, [])
        new: list[WorkerHandle] = []
        while sum(not worker.retiring for worker in members) < self._targets[kind]:
            worker = self._spares.pop(0) if self._has_spare_for(kind) else self._order()
            self._assign(worker, kind, members)
            members.append(worker)
            self._listener.attach(worker)
            new.append(worker)
        return new

    def _has_spare_for(self, kind: TaskType) -> bool:
        """Spares preload as CPU workers do, with numeric libraries on one thread, so IO workers can't use them then."""
        return bool(self._spares) and (kind is TaskType.CPU_BOUND or not self._preload.has_begun)

    def stock(self) -> None:
        """Have the spares ready again."""
        while len(self._spares) < self._options.spare_workers:
            spare = self._order()
            self._preload.send_all(spare)
            self._spares.append(spare)

    def preload(self, name: bytes, finished: Finished) -> None:
        self._preload.add(name, self._spares)

    def _order(self) -> WorkerHandle:
        assert self._forkserver is not None
        worker = WorkerHandle(next(self._tokens), self._forkserver, monotonic(), self._options.recycle_tasks)
        self._by_token[worker.token] = worker
        return worker

    def _assign(self, worker: WorkerHandle, kind: TaskType, members: list[WorkerHandle]) -> None:
        taken = {other.name for other in members if not other.retiring}
        name = next(name for name in (f"{_PREFIX[kind]}-{place}" for place in count()) if name not in taken)
        options = self._options
        threads = options.io_threads if kind is TaskType.IO_BOUND else 0
        role = Role(name, threads, options.script_root, options.capture_bytes, self._initializer, options.cpu_nice)
        worker.assume(kind, role)

    def born(self, token: int, pid: int) -> WorkerHandle | None:
        worker = self._by_token.get(token)
        if worker is not None:
            worker.pid = pid
            self._by_pid[pid] = worker
        return worker

    # -- ends ------------------------------------------------------------------------------------------------------

    def dismiss(self, worker: WorkerHandle) -> None:
        """It has nothing left to do: an idle worker leaves when its pipe closes, one with a stuck thread is ended."""
        if worker.doomed:
            self.end(worker, "a task could not be stopped")
        elif worker.ending is None:
            worker.ending = "recycled"
            worker.say_goodbye()

    def end(self, worker: WorkerHandle, reason: str) -> None:
        """SIGTERM for its whole group, SIGKILL after the grace."""
        worker.ending, worker.retiring = reason, True
        worker.kill(signal.SIGTERM)
        self.kill_later(worker)
        self._listener.wake()  # for its replacement

    def kill_later(self, worker: WorkerHandle) -> None:
        self._timers.later(self._options.kill_grace_seconds, partial(self._kill, worker))

    def _kill(self, worker: WorkerHandle, finished: Finished) -> None:
        if worker.is_open:
            worker.kill(signal.SIGKILL)

    def remove(self, worker: WorkerHandle, *, died_at_work: bool) -> None:
        self._by_token.pop(worker.token, None)
        if worker.pid is not None:
            self._by_pid.pop(worker.pid, None)
        if worker in self._spares and self._forkserver is not None:  # not when all died with the fork server
            self._preload.stop()
        for group in (self._spares, *self.by_type.values()):
            with contextlib.suppress(ValueError):
                group.remove(worker)
        worker.hang_up()
        self._listener.wake()
        if worker.ending is None and not worker.retiring:
            self.restarts += 1
            was_fit = died_at_work or worker.done > 0 or monotonic() - worker.born_at >= _BARREN_SECONDS
            self._barren = 0 if was_fit else self._barren + 1

    def detach(self, worker: WorkerHandle) -> None:
        self._listener.detach(worker)

    def pause_seconds(self) -> float:
        """How long to wait before the next start, when starting itself seems to fail."""
        return 0.0 if self._barren < 8 else self._patience.delay_seconds(self._barren - 7)

    # -- who is there ----------------------------------------------------------------------------------------------

    def find(self, pid: int) -> WorkerHandle | None:
        return self._by_pid.get(pid)

    def find_token(self, token: int) -> WorkerHandle | None:
        return self._by_token.get(token)

    @property
    def spare_count(self) -> int:
        return len(self._spares)

    def everyone(self) -> list[WorkerHandle]:
        return list(self._by_token.values())

    def workers(self) -> Iterator[WorkerHandle]:
        for members in self.by_type.values():
            yield from members
