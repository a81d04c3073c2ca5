"""One worker as the parent sees it: its pipe, what it has been given, how fast it is."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ulak.compute import decide
from ulak.compute.engine.work import Work
from ulak.compute.model import TaskType
from ulak.compute.pool.process import ForkserverLink
from ulak.compute.worker.framing import MAX_DESCRIPTORS, Frames, pack
from ulak.compute.worker.marks import Marks, page_file
from ulak.compute.worker.parcel import from_wire, inline, to_wire
from ulak.compute.worker.runner import Role

Report = tuple[float, list[Any], list[int]]


class WorkerHandle:
    def __init__(self, token: int, forkserver: ForkserverLink, now: float, quota: int | None = None) -> None:
        self.token = token
        self.name = f"spare-{token}"
        self.kind: TaskType | None = None
        self.threads = 0
        self.slots = 1  # how many tasks can run in it at a time
        self.pid: int | None = None
        self.inflight: dict[int, Work] = {}
        self.pulled: set[int] = set()  # numbers taken from it that it may still start
        self.idle_since = self.heard_at = self.born_at = now
        self.pace: float | None = None
        self.limit = 1
        self.recalled = False  # asked to return what it has not started
        self.retiring = False
        self.alone = False  # runs a suspect
        self.stopped_at: float | None = None
        self.ending: str | None = None  # why we end it ourselves
        self.doomed = False  # a thread of it is stuck for good
        self.is_open = True
        self.ready = True  # its initializer, if any, has run
        self.done = 0
        self.given = 0  # tasks sent to it and not returned
        self.fate: str | None = None  # why we killed it, when its task is to blame
        self._quota = quota or sys.maxsize  # of tasks, in its whole life
        self._unsent = bytearray()
        self._returned: deque[int] = deque()  # tickets of results whose memory it may use again
        self._forkserver = forkserver
        self._order(token, forkserver)

    def _order(self, token: int, forkserver: ForkserverLink) -> None:
        self._pipe, far = socket.socketpair()
        self._descriptors, far_descriptors = socket.socketpair()
        self._frames = Frames(self._descriptors, partial(_adopt, self._returned.append))
        for own in (self._pipe, self._descriptors):
            own.setblocking(False)
        self.descriptor = self._pipe.fileno()
        page = page_file()
        self.marks = Marks(page)
        wakeup_fd, self._wakeup_fd = os.pipe()
        forkserver.fork(token, [far.fileno(), page, wakeup_fd, far_descriptors.fileno()])
        far.close()
        far_descriptors.close()
        os.close(page)
        os.close(wakeup_fd)

    def fileno(self) -> int:
        return self.descriptor

    @property
    def load(self) -> int:
        return len(self.inflight)

    @property
    def active_count(self) -> int:
        """Tasks that run in it now. The mark of one that is over stays for a moment, and counts no more."""
        return sum(number in self.inflight or number in self.pulled for number in self.marks.running())

    @property
    def free(self) -> int:
        # With a number pulled it may have to be ended yet, and what it got meanwhile would come back late.
        if self.retiring or self.alone or self._unsent or self.pulled or self.stopped_at is not None:
            return 0
        return min(self.limit - len(self.inflight), self._quota - self.given)

    @property
    def is_spent(self) -> bool:
        """It has got as many tasks as it may run."""
        return self.given >= self._quota

    @property
    def status(self) -> str:
        if self.ending or self.retiring:
            return "leaving"
        if self.stopped_at is not None:
            return "stopped"
        return "busy" if self.inflight else "idle"

    def assume(self, kind: TaskType, role: Role) -> None:
        """Give a spare its part to play."""
        self.kind, self.name, self.threads = kind, role.name, role.threads
        self.limit = self.slots = max(1, role.threads)
        self.ready = role.initializer is None
        self.write([tuple(role)])

    def write(self, messages: Sequence[tuple[Any, ...] | bytes]) -> bool:
        """Send without blocking; False when part of it must wait until the pipe is read."""
        tickets = [self._returned.popleft() for _ in range(len(self._returned))]
        try:
            return self._send(pack((tickets, messages)))
        except ValueError:  # marshal can't take a parcel, so this is tried first, and costs nothing without one
            pass
        for start in range(0, len(messages), MAX_DESCRIPTORS):
            self._send(self._packed(tickets, messages[start : start + MAX_DESCRIPTORS]))
            tickets = []
        return not self._unsent

    def _packed(self, tickets: list[int], messages: Sequence[Any]) -> bytes:
        """A frame whose descriptors are on their way already."""
        wired, descriptors = to_wire(messages)
        try:
            socket.send_fds(self._descriptors, [b"d"], descriptors)
        except OSError:  # too many are unread: through the pipe, then
            return pack((tickets, [tuple(map(inline, message)) for message in messages]))
        return pack((tickets, wired), len(descriptors))

    def _send(self, frame: bytes) -> bool:
        if not self._unsent:
            try:
                sent = self._pipe.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:  # it is dead; its death is reported apart
                return True
            if sent == len(frame):
                return True
            frame = frame[sent:]
        self._unsent += frame
        return False

    def flush(self) -> bool:
        """Send more of what had to wait; True when all is sent."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent:
                del self._unsent[: self._pipe.send(bytes(self._unsent[: 1 << 20]))]
        return not self._unsent

    def read(self) -> Iterable[Any]:
        """The reports that have arrived."""
        try:
            return self._frames.receive(self._pipe) or ()
        except (BlockingIOError, ConnectionResetError):
            return ()

    def read_rest(self) -> list[Any]:
        """Everything that a dead worker still got out."""
        reports: list[Any] = []
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while (arrived := self._frames.receive(self._pipe)) is not None:
                reports += arrived
        return reports

    def recall(self) -> None:
        """Ask the control thread for outcomes held back and for what has not been started."""
        self.recalled = True
        if self.is_open:
            with contextlib.suppress(OSError):
                os.write(self._wakeup_fd, b"r")

    def learn(self, busy: float, count: int) -> None:
        if count:
            self.pace = decide.new_pace(self.pace, busy, count)
            self.limit = self.slots + decide.ahead(self.pace)

    def kill(self, number: signal.Signals) -> None:
        if self.pid is not None:
            self._forkserver.kill(self.pid, number)

    def say_goodbye(self) -> None:
        """Close our half of the pipe: an idle worker leaves by itself."""
        with contextlib.suppress(OSError):
            self._pipe.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        if self.is_open:
            self.is_open = False
            self.descriptor = -1
            self._pipe.close()
            self._descriptors.close()
            os.close(self._wakeup_fd)
            self.marks.close()


def _adopt(give_back: Callable[[int], None], report: Report, descriptors: list[int]) -> Report:
    """A report whose outcomes came with shared memory."""
    busy, outcomes, returned = report
    return busy, from_wire(outcomes, descriptors, give_back), returned
