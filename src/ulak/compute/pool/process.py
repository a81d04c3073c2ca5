"""The parent's link to the fork server, which starts and ends worker processes."""

from __future__ import annotations

import contextlib
import json
import marshal
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import spawn
from typing import Any

_BOOTSTRAP = os.path.join(os.path.dirname(__file__), os.pardir, "worker", "bootstrap.py")


class ForkserverLink:
    """Orders workers from the fork server and reads its news of them.

    It must be made by a thread that lives as long as the engine: the kernel's death signal is tied to that thread.
    """

    def __init__(self) -> None:
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = self._start(far.fileno())
        self._send(("prepare", _preparation()))

    def _start(self, descriptor: int) -> subprocess.Popen[bytes]:
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing does
        command = [sys.executable, *flags, _BOOTSTRAP, str(descriptor), json.dumps(sys.path)]
        return subprocess.Popen(command, pass_fds=[descriptor], stdin=subprocess.DEVNULL, process_group=0)

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        return self._control.fileno()

    def fork(self, token: int, descriptors: Sequence[int]) -> None:
        """Order a worker that owns these descriptors; its pipe can be written to before it lives."""
        self._send(("fork", token), descriptors)

    def kill(self, pid: int, number: int) -> None:
        self._send(("kill", pid, int(number)))

    def hear(self) -> list[tuple[Any, ...]] | None:
        """Return the news since the last call; None when the fork server itself is gone."""
        heard: list[tuple[Any, ...]] = []
        while True:
            try:
                data = self._control.recv(4096, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return heard
            except OSError:
                return heard or None
            if not data:
                return heard or None
            heard.append(marshal.loads(data))

    def close(self, wait_seconds: float = 5.0) -> None:
        self._control.close()
        try:
            self._process.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, words: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its death is heard by `hear`
            socket.send_fds(self._control, [marshal.dumps(words)], list(descriptors))


def _preparation() -> dict[str, Any]:
    """The preparation data of multiprocessing's spawn, as plain data."""
    data = spawn.get_preparation_data("ulak-worker")
    data.pop("start_method", None)
    data["authkey"] = bytes(multiprocessing.current_process().authkey)
    return {key: value for key, value in data.items() if value is not None}
