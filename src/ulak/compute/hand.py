"""One worker as the parent sees it: its pipe, what it has been given, how fast it is."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from ulak.compute import decide
from ulak.compute.marks import Marks, page_file
from ulak.compute.model import TaskType
from ulak.compute.process import NurseryLink, close_all
from ulak.compute.runner import Role
from ulak.compute.wire import Frames, pack
from ulak.compute.work import Work


class Hand:
    def __init__(self, token: int, nursery: NurseryLink, now: float) -> None:
        self.token = token
        self.name = f"spare-{token}"
        self.kind: TaskType | None = None
        self.threads = 0
        self.hands = 1  # how many tasks can run in it at a time
        self.pid: int | None = None
        self.inflight: dict[int, Work] = {}
        self.idle_since = self.heard_at = self.born_at = now
        self.pace: float | None = None
        self.limit = 1
        self.rung = False  # asked to return what it has not started
        self.retiring = False
        self.alone = False  # runs a suspect
        self.stopped_at: float | None = None
        self.ending: str | None = None  # why we end it ourselves
        self.doomed = False  # a thread of it is stuck for good
        self.is_open = True
        self.done = 0
        self.attended: Work | None = None  # whose caller hears this worker itself
        self._unsent = bytearray()
        self._frames = Frames()
        self._nursery = nursery
        self._order(token, nursery)

    def _order(self, token: int, nursery: NurseryLink) -> None:
        self._pipe, far = socket.socketpair()
        self._pipe.setblocking(False)
        self.descriptor = self._pipe.fileno()
        page = page_file()
        self.marks = Marks(page)
        bell, self._bell = os.pipe()
        nursery.fork(token, [far.fileno(), page, bell])
        far.close()
        close_all([page, bell])

    def fileno(self) -> int:
        return self.descriptor

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def load(self) -> int:
        return len(self.inflight)

    @property
    def room(self) -> int:
        if self.retiring or self.alone or self._unsent or self.stopped_at is not None:
            return 0
        return self.limit - len(self.inflight)

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
        self.limit = self.hands = max(1, role.threads)
        self.write([tuple(role)])

    def write(self, messages: Sequence[tuple[Any, ...] | bytes]) -> bool:
        """Send without blocking; False when part of it must wait until the pipe has room."""
        frame = pack(messages)
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

    def ring(self) -> None:
        """Ask the steward for outcomes held back and for what has not been started."""
        self.rung = True
        if self.is_open:
            with contextlib.suppress(OSError):
                os.write(self._bell, b"r")

    def learn(self, busy: float, count: int) -> None:
        if count:
            self.pace = decide.new_pace(self.pace, busy, count)
            self.limit = self.hands + decide.ahead(self.pace)

    def kill(self, number: signal.Signals) -> None:
        if self.pid is not None:
            self._nursery.kill(self.pid, number)

    def say_goodbye(self) -> None:
        """Close our half of the pipe: an idle worker leaves by itself."""
        with contextlib.suppress(OSError):
            self._pipe.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        if self.is_open:
            self.is_open = False
            self.descriptor = -1
            self._pipe.close()
            os.close(self._bell)
            self.marks.close()
