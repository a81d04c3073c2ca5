"""A warm process with everything imported, from which children are forked: a start takes milliseconds, not a second.

It has no thread and no loop, so a fork of it is clean. It reaps only what it is told to, so no pid is used twice.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.crash.wire import Ear, Failed, Life, Ready, Record

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0
_START, _REAP = b"s", b"r"
_MOST = 1 << 16


class ChildFailed(Exception):
    """A process met something that it did not expect."""


class Child:
    """A process that was forked in the nursery, and what it has said."""

    def __init__(self, pid: int, ear: Ear) -> None:
        self.pid = pid
        self.ear = ear
        self.ready = False
        self.status: int | None = None

    @property
    def was_killed(self) -> bool:
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL


class Nursery:
    """Starts, hears, signals and buries children."""

    def __init__(self, hear: Callable[[Record], None] = lambda record: None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if not name.startswith("ULAK_")}
            | {"PYTHONPATH": path},
        )
        theirs.close()
        self._socket = ours
        self._selector = selectors.DefaultSelector()
        self.hear = hear
        self.children: list[Child] = []

    def start(self, life: Life) -> Child:
        reading, writing = os.pipe()
        socket.send_fds(self._socket, [_START + msgspec.json.encode(life)], [writing])
        os.close(writing)
        child = Child(int(self._socket.recv(_MOST)), Ear(reading))
        self._selector.register(reading, selectors.EVENT_READ, child)
        self.children.append(child)
        return child

    def start_ready(self, life: Life) -> Child:
        child = self.start(life)
        self.listen(lambda: child.ready or child.status is not None)
        return child

    def listen(self, until: Callable[[], Any] = lambda: False, seconds: float | None = None) -> bool:
        """Hear all children until the condition holds, or for some time. Without a time, it has to come true."""
        deadline = time.monotonic() + (PATIENCE_SECONDS if seconds is None else seconds)
        while not until():
            left = deadline - time.monotonic()
            if left <= 0 and seconds is None:
                raise TimeoutError(f"nothing came of it in {PATIENCE_SECONDS:.0f} s")
            if left <= 0:
                return False
            for key, _ in self._selector.select(left):
                self._hear(key.data)
        return True

    def _hear(self, child: Child) -> None:
        for record in child.ear.hear():
            child.ready |= isinstance(record, Ready)
            if isinstance(record, Failed):
                raise ChildFailed(f"child {child.pid}: {record.text}")
            self.hear(record)
        if child.ear.ended:
            self._bury(child)

    def _bury(self, child: Child) -> None:
        self._selector.unregister(child.ear.descriptor)
        child.ear.close()
        self.children.remove(child)
        self._socket.send(_REAP + str(child.pid).encode())
        child.status = int(self._socket.recv(_MOST))

    def signal(self, child: Child, sign: int) -> None:
        if child.status is None:
            os.kill(child.pid, sign)

    def kill(self, child: Child) -> None:
        """SIGKILL, and hear everything that it said before."""
        self.signal(child, signal.SIGKILL)
        self.listen(lambda: child.status is not None)

    def finish(self, child: Child) -> int | None:
        """Until it has ended by itself."""
        self.listen(lambda: child.status is not None)
        return child.status

    def kill_all(self) -> None:
        for child in list(self.children):
            self.kill(child)

    def close(self) -> None:
        with contextlib.suppress(ChildFailed):
            self.kill_all()
        self._socket.close()
        self._process.wait(PATIENCE_SECONDS)

    @contextlib.contextmanager
    def heard_by(self, hear: Callable[[Record], None]) -> Iterator[None]:
        """For one test: what is said goes to this listener, and nothing is left alive."""
        self.hear = hear
        try:
            yield
        finally:
            self.hear = lambda record: None
            self.kill_all()


def main(descriptor: int) -> None:
    """Serve the parent until it goes away."""
    from tests.crash.child import live

    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.SIG_IGN)  # the parent tells when to end, by closing its socket
    parent = socket.socket(fileno=descriptor)
    while True:
        message, descriptors, _, _ = socket.recv_fds(parent, _MOST, 1)
        if not message:
            return
        if message[:1] == _REAP:
            parent.send(str(os.waitpid(int(message[1:]), 0)[1]).encode())
            continue
        pid = os.fork()
        if pid == 0:
            _be_born(parent, msgspec.json.decode(message[1:], type=Life), descriptors[0], live)
        os.close(descriptors[0])
        parent.send(str(pid).encode())


def _be_born(parent: socket.socket, life: Life, descriptor: int, live: Callable[[Life, int], None]) -> None:
    parent.close()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.SIG_DFL)
    try:
        live(life, descriptor)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
