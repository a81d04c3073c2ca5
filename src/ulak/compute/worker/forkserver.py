"""The process that forks workers: single-threaded and small, so that a fork is safe and takes milliseconds.

It also watches them: it reports births, deaths and stops, and ends a dead worker's whole process group before the
number of the group can be used again. When the engine goes away, however, it takes all workers with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import marshal
import os
import signal
import socket
from collections.abc import Iterable, Sequence
from multiprocessing import spawn
from select import POLLIN, poll
from typing import Any

from ulak.compute.worker import worker

_MESSAGE_BYTES = 1 << 18
_PR_SET_PDEATHSIG = 1
_WATCHED = os.WEXITED | os.WSTOPPED | os.WCONTINUED | os.WNOHANG | os.WNOWAIT


class _Over(Exception):
    """The engine is gone."""


class Forkserver:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: set[int] = set()
        self._pid = os.getpid()
        self._is_over = False
        self._ear, self._tongue = socket.socketpair()
        self._main_module: dict[str, Any] = {}

    def serve(self) -> None:
        self._listen_to_signals()
        watch = poll()
        watch.register(self._control, POLLIN)
        watch.register(self._ear, POLLIN)
        gc.freeze()  # pages of what is loaded now stay shared with the workers
        try:
            while True:
                ready = {descriptor for descriptor, _ in watch.poll()}
                if self._is_over:
                    raise _Over
                if self._ear.fileno() in ready:
                    self._hear()
                if self._control.fileno() in ready:
                    self._obey()
        except _Over:
            self._end_all()

    def _listen_to_signals(self) -> None:
        self._ear.setblocking(False)
        self._tongue.setblocking(False)
        signal.set_wakeup_fd(self._tongue.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._leave)
        _die_with_parent(signal.SIGTERM)

    def _leave(self, *_: object) -> None:
        """Only noted: an exception could come up anywhere, even in a fork that is not a worker yet."""
        if os.getpid() != self._pid:
            os._exit(128 + signal.SIGTERM)
        self._is_over = True

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._ear.recv(4096)
        while (change := self._next_change()) is not None:
            self._report(*change)

    def _next_change(self) -> tuple[str, int, int] | None:
        try:
            seen = os.waitid(os.P_ALL, 0, _WATCHED)
        except ChildProcessError:
            return None
        if seen is None:
            return None
        if seen.si_code in (os.CLD_STOPPED, os.CLD_CONTINUED):
            os.waitid(os.P_PID, seen.si_pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
            return ("stopped" if seen.si_code == os.CLD_STOPPED else "continued"), seen.si_pid, 0
        return "died", seen.si_pid, self._bury(seen.si_pid)

    def _bury(self, pid: int) -> int:
        """End what the worker left running; as long as it is not reaped, its group's number is still its own."""
        _signal_group(pid, signal.SIGKILL)
        self._children.discard(pid)
        return os.waitpid(pid, 0)[1]

    def _obey(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, 4)
        except ConnectionResetError:
            raise _Over from None
        if not data:
            raise _Over
        verb, *words = marshal.loads(data)
        if verb == "fork":
            self._fork(words[0], descriptors)
        elif verb == "kill" and words[0] in self._children:
            _signal_group(words[0], words[1])
        elif verb == "prepare":
            self._main_module = _prepare(words[0])

    def _fork(self, token: int, descriptors: Sequence[int]) -> None:
        try:
            pid = os.fork()
        except OSError as refused:
            self._report("unborn", token, str(refused))
        else:
            if pid == 0:
                self._become_worker(descriptors)
            self._children.add(pid)
            self._report("born", token, pid)
        _close_all(descriptors)

    def _become_worker(self, descriptors: Sequence[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        _die_with_parent(signal.SIGKILL)
        if os.getppid() == 1:  # the forkserver died before we could ask to die with it
            os._exit(1)
        for own in (self._control, self._ear, self._tongue):
            own.close()
        gc.unfreeze()
        pipe, page, wakeup_fd, side = descriptors
        worker.main(pipe, page, wakeup_fd, side, self._main_module)

    def _report(self, *words: Any) -> None:
        try:
            self._control.send(marshal.dumps(words))
        except OSError:
            raise _Over from None

    def _end_all(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for pid in self._children:
            _signal_group(pid, signal.SIGKILL)


def _signal_group(pid: int, number: int) -> None:
    """Signal the worker and its group; a child that has not come to its own group yet is signalled alone."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _die_with_parent(number: int) -> None:
    """Ask the kernel for this signal when the parent *thread* ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _prepare(preparation: dict[str, Any]) -> dict[str, Any]:
    """Stand where the engine stands (directory, path, arguments); its main module is left to the task that needs it."""
    main_module = {key: preparation.pop(key) for key in list(preparation) if key.startswith("init_main")}
    spawn.prepare(preparation)
    return main_module


def main(descriptor: int) -> None:
    Forkserver(socket.socket(fileno=descriptor)).serve()
