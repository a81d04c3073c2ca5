"""The worker process: takes messages from its pipe, runs them, sends outcomes. It knows nothing of its siblings."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pickle import loads
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from ulak.compute.worker import lazy_main
from ulak.compute.worker.framing import MAX_DESCRIPTORS, Frames, pack
from ulak.compute.worker.lender import Lender
from ulak.compute.worker.marks import Marks
from ulak.compute.worker.parcel import Packer, from_wire, to_wire
from ulak.compute.worker.protocol import OK
from ulak.compute.worker.runner import Role, Runner

_HOLD_SECONDS = 0.001  # outcomes of tiny tasks are sent together, at most this late
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

Message = tuple[Any, ...]
Batch = tuple[list[int], list[Message]]


class Pipe:
    """The worker's end: messages in, outcomes out, and the return of what has not been started."""

    def __init__(self, pipe: socket.socket, descriptors: socket.socket) -> None:
        self._pipe, self._descriptors = pipe, descriptors
        self._frames = Frames(descriptors, _adopt)
        self._reading = threading.Lock()
        self._sending = threading.Lock()
        self._done: list[Message] = []
        self._busy = 0.0
        self._sent_at = 0.0
        self.returned: deque[int] = deque()  # tickets of results that the parent has no mapping of any more

    def wait(self) -> list[Message]:
        """Block until messages arrive; an empty list when the parent has closed the pipe."""
        with self._reading:
            while (batches := self._frames.receive(self._pipe)) is not None:
                if batches:
                    return self._joined(batches)
        return []

    def arrived(self) -> list[Message]:
        """Return the messages that are there already; none when another thread waits for them anyway."""
        if not self._reading.acquire(blocking=False):
            return []
        try:
            return self._drain()
        finally:
            self._reading.release()

    def _drain(self) -> list[Message]:
        messages: list[Message] = []
        with contextlib.suppress(BlockingIOError):
            while (batches := self._frames.receive(self._pipe, socket.MSG_DONTWAIT)) is not None:
                messages += self._joined(batches)
        return messages

    def _joined(self, batches: list[Batch]) -> list[Message]:
        messages: list[Message] = []
        for tickets, batch in batches:
            self.returned.extend(tickets)
            messages += batch
        return messages

    def keep(self, outcome: Message, seconds: float) -> None:
        self._done.append(outcome)
        self._busy += seconds

    def is_late(self, now: float) -> bool:
        return now - self._sent_at > _HOLD_SECONDS

    def send(self, returned: list[int] | None = None) -> None:
        """Send the outcomes so far, in one frame; `returned` are the numbers of messages that were not started."""
        with self._sending:
            count = len(self._done)
            if not count and returned is None:
                return
            outcomes, busy = self._done[:count], self._busy
            del self._done[:count]
            self._busy = 0.0
            self._sent_at = monotonic()
            self._transmit(busy, outcomes, returned or [])

    def _transmit(self, busy: float, outcomes: list[Message], returned: list[int]) -> None:
        try:
            self._push(pack((busy, outcomes, returned)))
        except ValueError:  # marshal can't take a parcel
            for start in range(0, len(outcomes), MAX_DESCRIPTORS):
                wired, descriptors = to_wire(outcomes[start : start + MAX_DESCRIPTORS])
                self._push(pack((0.0, wired, []), len(descriptors)), descriptors)
            self._push(pack((busy, [], returned)))

    def _push(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        try:
            if descriptors:
                socket.send_fds(self._descriptors, [b"d"], descriptors)
            self._pipe.sendall(frame)
        except OSError:
            end_group()


def _adopt(batch: Batch, descriptors: list[int]) -> Batch:
    """A batch whose messages came with shared memory."""
    tickets, messages = batch
    return tickets, from_wire(messages, descriptors)


class SerialWorker:
    """A CPU worker: one message after another, on the main thread."""

    def __init__(self, pipe: Pipe, marks: Marks, runner: Runner) -> None:
        self._pipe, self._marks, self._runner = pipe, marks, runner
        self._waiting: deque[Message] = deque()

    def serve(self, messages: list[Message]) -> None:
        while True:
            self._accept(messages)
            self._work()
            self._pipe.send()
            self._marks.clear(0)  # not before the outcome is sent: a task may also break the sending
            self._runner.rest()
            if not (messages := self._pipe.wait()):
                return

    def _work(self) -> None:
        waiting, pipe = self._waiting, self._pipe
        while waiting:
            try:
                message = waiting.popleft()
            except IndexError:  # the control thread was faster
                return
            began = monotonic()
            self._marks.start(0, message[0], began)
            outcome = self._runner.run(message)
            ended = monotonic()
            pipe.keep(outcome, ended - began)
            if waiting and pipe.is_late(ended):
                pipe.send()

    def _accept(self, messages: list[Message]) -> None:
        self._runner.begin()
        self._waiting.extend(messages)

    def give_back(self) -> None:
        self._accept(self._pipe.arrived())
        returned: list[int] = []
        with contextlib.suppress(IndexError):
            while True:
                returned.append(self._waiting.pop()[0])
        self._pipe.send(returned[::-1])


class ThreadedWorker:
    """An IO worker: every message on a thread of its own, as many threads as its role allows."""

    def __init__(self, pipe: Pipe, marks: Marks, runner: Runner, threads: int) -> None:
        self._pipe, self._marks, self._runner = pipe, marks, runner
        self._waiting: SimpleQueue[Message] = SimpleQueue()
        self._threads = threads
        self._hired = 0

    def serve(self, messages: list[Message]) -> None:
        while True:
            self._runner.begin()
            for message in messages:
                if self._hired < self._threads:
                    self._hire()
                self._waiting.put(message)
            if not (messages := self._pipe.wait()):
                return

    def _hire(self) -> None:
        threading.Thread(target=self._work, args=(self._hired,), name=f"io-{self._hired}", daemon=True).start()
        self._hired += 1

    def _work(self, slot: int) -> None:
        while True:
            message = self._waiting.get()
            began = monotonic()
            self._marks.start(slot, message[0], began)
            outcome = self._runner.run(message)
            self._pipe.keep(outcome, monotonic() - began)
            self._pipe.send()
            self._marks.clear(slot)

    def give_back(self) -> None:
        returned: list[int] = []
        with contextlib.suppress(Empty):
            while True:
                returned.append(self._waiting.get_nowait()[0])
        self._pipe.send(returned)


def main(pipe: int, page: int, wakeup_fd: int, descriptors: int, main_module: dict[str, Any]) -> None:
    """Live as a worker until the parent hangs up, then leave without running the forkserver's exit handlers."""
    code = 1
    try:
        _serve(Pipe(socket.socket(fileno=pipe), socket.socket(fileno=descriptors)), Marks(page), wakeup_fd, main_module)
        code = 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _serve(pipe: Pipe, marks: Marks, wakeup_fd: int, main_module: dict[str, Any]) -> None:
    lazy_main.install(main_module)
    messages = _preload_until_role(pipe)
    if not messages:  # a spare that was never needed
        return
    role = Role(*messages[0])
    if role.threads == 0:
        _limit_threads()
        os.nice(role.nice)
    runner = Runner(role, Packer(lender=Lender(pipe.returned)))
    if readiness := runner.prepare():
        pipe.keep(readiness, 0.0)
        pipe.send()
        if readiness[1] != OK:
            return
    worker = ThreadedWorker(pipe, marks, runner, role.threads) if role.threads else SerialWorker(pipe, marks, runner)
    threading.Thread(target=_obey, args=(wakeup_fd, worker), name="control", daemon=True).start()
    worker.serve(messages[1:])  # the first tasks may have come with the role


def _preload_until_role(pipe: Pipe) -> list[Message]:
    """As a spare: load the functions that other workers run, until the role comes, perhaps in the middle of it."""
    waiting: list[Any] = []
    while True:
        waiting += pipe.arrived() if waiting else pipe.wait()
        if not waiting:
            return []
        for place, message in enumerate(waiting):
            if not isinstance(message, bytes):
                return waiting[place:]
        _preload(waiting.pop(0))


def _preload(name: bytes) -> None:
    """Load a function's module. An error comes up again, and is reported, when a task needs it."""
    _limit_threads()  # a spare that has loaded something becomes a CPU worker
    with contextlib.suppress(BaseException):
        loads(name)


def _limit_threads() -> None:
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))


def _obey(wakeup_fd: int, worker: SerialWorker | ThreadedWorker) -> None:
    """The control thread: answers the parent while a task runs; when the parent is gone, it ends the task too."""
    while os.read(wakeup_fd, 64):
        worker.give_back()
    end_group()


def end_group() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)
