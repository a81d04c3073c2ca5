"""The descriptors that the dispatcher's thread sleeps on: workers' pipes, the fork server's link, and a wake-up."""

from __future__ import annotations

import os
import select
import weakref
from collections.abc import Iterator

from ulak.compute.pool.worker_handle import WorkerHandle

_EVENTS = 64  # per look; the default allocates for a thousand each time
HANGUP, WRITABLE = select.EPOLLHUP, select.EPOLLOUT


class Listener:
    def __init__(self) -> None:
        self._poll = select.epoll()
        self._workers: dict[int, WorkerHandle] = {}
        self.woken = False  # something needs a look: strength, queues, waiting submitters
        self._wakeup_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Not earlier, and not while the interpreter leaves: a late `wake` must not write to somebody else's.
        weakref.finalize(self, os.close, self._wakeup_fd).atexit = False
        self._poll.register(self._wakeup_fd, select.EPOLLIN)

    def wake(self) -> None:
        """Have the dispatcher's thread look after everything before it sleeps again."""
        self.woken = True
        os.eventfd_write(self._wakeup_fd, 1)

    def poll(self, seconds: float) -> Iterator[tuple[WorkerHandle | None, int]]:
        """The workers that have something to say, each with its events; None stands for the fork server.

        Each is looked up when its turn comes, since handling one event may detach other workers.
        """
        for descriptor, events in self._poll.poll(seconds, _EVENTS):
            if descriptor == self._wakeup_fd:
                os.eventfd_read(descriptor)
            else:
                yield self._workers.get(descriptor), events

    def attach(self, worker: WorkerHandle) -> None:
        self._workers[worker.descriptor] = worker
        self._poll.register(worker.descriptor, select.EPOLLIN)

    def detach(self, worker: WorkerHandle) -> None:
        if self._workers.pop(worker.descriptor, None) is not None:
            self._poll.unregister(worker.descriptor)

    def expect_writable(self, worker: WorkerHandle, wanted: bool) -> None:
        """Whether to report when the worker's pipe takes more."""
        if worker.descriptor in self._workers:
            self._poll.modify(worker.descriptor, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def add(self, descriptor: int) -> None:
        self._poll.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)

    def close(self) -> None:
        self._poll.close()
