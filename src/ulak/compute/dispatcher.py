"""The local backend: accepts work on the caller's thread, hears the workers on its own.

When a worker is idle, work is sent from the caller's thread too. The lock guards the table; nobody else's code is ever
called while it is held.
"""

from __future__ import annotations

import os
import select
import threading
import weakref
from collections import deque
from collections.abc import Callable
from signal import SIGKILL
from time import monotonic
from typing import Any

from ulak.compute import decide, metrics
from ulak.compute.attendant import Attendant
from ulak.compute.backend import Shutdown
from ulak.compute.closing import Closing
from ulak.compute.hand import Hand
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings
from ulak.compute.table import Table
from ulak.compute.warden import Warden
from ulak.compute.work import ASIDE, QUEUED, SENT, Finished, Outcome, Work, tell
from ulak.errors import Refused, Unavailable

_EVENTS = 64  # per look; the default makes room for a thousand each time
_dispatchers: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher(Table):
    """The local backend: worker processes on this machine."""

    def __init__(self, settings: ComputeSettings, initializer: bytes | None = None) -> None:
        super().__init__(settings, initializer)
        self._warden = Warden(self, settings)
        self._attendant = Attendant(self, tell)
        self._hands: dict[int, Hand] = {}
        self._waiters: deque[Callable[[], None]] = deque()  # want room in a line
        self._wanted: set[TaskType] = set()
        self._untidy = False  # the crews' strength, the lines or the waiters need a look
        self._over = False
        self._emptied = threading.Event()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Not earlier, and not while the interpreter leaves: a late `wake` must not ring somebody else's.
        weakref.finalize(self, os.close, self._bell).atexit = False
        self._poll.register(self._bell, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="ulak-compute", daemon=True)
        self._thread.start()
        _dispatchers.add(self)

    # -- on the caller's thread ------------------------------------------------------------------------------------

    def submit(self, work: Work) -> None:
        """Accept, or raise: Refused when the line is full, Unavailable when the engine is closing."""
        kind = work.options.task_type
        with self.lock:
            if self.broken is not None:
                raise self.broken
            if self.closing:
                raise Unavailable("the engine is shut down; make a new one")
            line = self.lines[kind]
            if self._capacity is not None and line.depth >= self._capacity:
                raise Refused(f"{line.depth} {kind.value} tasks wait already; submit later or raise input_capacity")
            self.unfinished += 1
            self.total_put += 1
            if not line.depth and not line.suspects and (hand := self._free_hand(kind)):
                self.give(hand, [work])
                return
            line.put(work)
            if kind not in self._wanted:
                self._wanted.add(kind)
                self.wake()

    def cancel(self, work: Work, *, running: bool) -> bool:
        """Let go of work that waits; with `running`, end it at its worker too. False when it was too late."""
        with self.lock:
            if work.state in (QUEUED, ASIDE):
                self._withdraw(work)
            elif work.state == SENT and running:
                self._warden.pull(work, "cancelled")
            else:
                return False
            self._conclude(work)
        work.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts))
        return True

    def cancel_waiting(self) -> int:
        finished: Finished = []
        with self.lock:
            for work in self.take_all():
                self.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts), finished)
        tell(finished)
        return len(finished)

    def attend(self, work: Work, seconds: float | None) -> None:
        self._attendant.attend(work, seconds)

    def when_room(self, callback: Callable[[], None]) -> None:
        """Call once, from the dispatcher's thread, when a line may have room again."""
        with self.lock:
            self._waiters.append(callback)
        self.wake()

    def is_running(self, work: Work) -> bool:
        with self.lock:
            hand = work.hand
            return work.state == SENT and hand is not None and work.number in hand.marks.running()

    def metrics(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            return metrics.of_dispatcher(self)

    def status(self) -> dict[str, str]:
        with self.lock:
            return metrics.status_of(self)

    def close(self, drain_seconds: float | None) -> Shutdown:
        with self.lock:
            self.closing = True
            if not self.unfinished:
                self.drained.set()
        self.wake()
        if not self._thread.is_alive():
            return Shutdown(True)
        return Closing(self, self._warden).run(drain_seconds)

    def wait_drained(self, seconds: float | None) -> bool:
        return self.drained.wait(seconds)

    def wait_empty(self, until: float) -> None:
        """Until all workers have gone, or the time is over."""
        self._emptied.wait(max(0.0, until - monotonic()))

    def stop(self) -> None:
        """The last word: the thread ends, and with the nursery every process that is left."""
        self._over = True
        self.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def drop(self) -> None:
        with self.lock:
            self.total_dropped += 1

    def wake(self) -> None:
        self._untidy = True
        os.eventfd_write(self._bell, 1)

    def tidy_up(self) -> None:
        """Have the crews' strength looked at before the thread sleeps again."""
        self._untidy = True
        if threading.current_thread() is not self._thread:
            self.wake()

    def _withdraw(self, work: Work) -> None:
        if work.state == QUEUED:
            self.lines[work.options.task_type].depth -= 1

    # -- on the dispatcher's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Whoever is told wakes up and wants the interpreter, so telling is the last thing before going to sleep."""
        self._warden.open_nursery()
        self._warden.start_patrol()
        pause = 0.0
        while not self._over:
            finished: Finished = []
            for descriptor, mask in self._poll.poll(pause, _EVENTS):
                self._handle(descriptor, mask, finished)
            self._keep_house(finished)
            with self.lock:
                pause = self._pause()
            tell(finished)
        self._warden.close_nursery()
        self._poll.close()

    def _pause(self) -> float:
        """How long to sleep when nothing happens: to the next timer, or until a deep worker's silence is suspicious."""
        now = monotonic()
        pauses = [self._ring_at(hand) - now for hand in self._deep if not hand.rung]
        return max(0.0, min([self.timers.pause(now), *pauses]))

    def _handle(self, descriptor: int, mask: int, finished: Finished) -> None:
        hand = self._hands.get(descriptor)
        if hand is not None:
            self._hear(hand, mask, finished)
        elif descriptor == self._bell:
            os.eventfd_read(self._bell)
        else:
            self._warden.hear(finished)

    def _hear(self, hand: Hand, mask: int, finished: Finished) -> None:
        with self.lock:
            if mask & select.EPOLLOUT and hand.flush():
                self._poll.modify(hand, select.EPOLLIN)
            if not self.take_reports(hand, finished) and mask & select.EPOLLHUP:
                self.forget(hand)
                self._warden.expect_death(hand)

    def take_reports(self, hand: Hand, finished: Finished) -> bool:
        """Read and apply, under one hold of the lock: a worker may be heard by two threads."""
        try:
            reports = hand.read()
        except (ValueError, EOFError, TypeError):  # somebody in the worker wrote into our pipe
            self.forget(hand)
            hand.kill(SIGKILL)
            return True
        for report in reports:
            self.apply(hand, report, finished)
        if hand.kind is not None:
            line = self.lines[hand.kind]
            if line.depth or line.suspects:
                self.feed(hand.kind)
        return bool(reports)

    def _keep_house(self, finished: Finished) -> None:
        now = monotonic()
        if not (self._deep or self._waiters or self._untidy or self.timers.is_due(now)):
            return
        with self.lock:
            self.timers.run(now, finished)
            self._untidy = False
            self._warden.keep_strength(self._wanted)
            for hand in self._deep:
                if not hand.rung and now >= self._ring_at(hand):
                    hand.ring()
            for kind in self._wanted:
                self.feed(kind)
            waiters = self._admitted()
            if self.closing_workers and not self.fleet.everyone():
                self._emptied.set()
        for callback in waiters:
            callback()

    def _ring_at(self, hand: Hand) -> float:
        idle = next(iter(self.idle[hand.kind]), None) if hand.kind is not None else None
        return decide.ring_at(hand.heard_at, hand.pace, None if idle is None else idle.idle_since)

    def _admitted(self) -> list[Callable[[], None]]:
        """Those waiting for room are all called when there is some; who comes too late waits again."""
        if not self._waiters or not (self.closing or any(self.has_room(kind) for kind in TaskType)):
            return []
        waiters, self._waiters = list(self._waiters), deque()
        return waiters

    def attach(self, hand: Hand) -> None:
        self._hands[hand.fileno()] = hand
        self._poll.register(hand, select.EPOLLIN)

    def forget(self, hand: Hand) -> None:
        if self._hands.pop(hand.descriptor, None) is not None:
            self._poll.unregister(hand)

    def mute(self, hand: Hand) -> bool:
        """Leave the hearing of a worker to somebody else; its hanging up is still heard here."""
        if hand.descriptor not in self._hands or hand.has_unsent:
            return False
        self._poll.modify(hand.descriptor, 0)
        return True

    def unmute(self, hand: Hand) -> None:
        if hand.descriptor in self._hands:
            self._poll.modify(hand.descriptor, select.EPOLLIN | (select.EPOLLOUT if hand.has_unsent else 0))
        if self._deep or self._waiters:  # what was passed on meanwhile needs the thread's eye
            self.wake()

    def listen_to(self, descriptor: int) -> None:
        self._poll.register(descriptor, select.EPOLLIN)

    def stop_listening(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)


def _disown() -> None:
    """In a fork of the parent: the workers are not ours, and a word to them would garble the parent's."""
    for dispatcher in list(_dispatchers):
        dispatcher.lock = threading.Lock()  # perhaps held by a thread that is not here
        dispatcher.closing = True


os.register_at_fork(after_in_child=_disown)
