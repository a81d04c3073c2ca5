"""A caller that waits for its task lends its thread: it hears the worker itself, which saves waking a second thread.

Only for a task that is alone at its worker. Whatever else happens to the task (a cancel, a timeout, a death) is done by
others, who ring the caller's bell; then, and whenever anything is unusual, the caller waits as everybody does.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
from collections.abc import Callable
from signal import SIGKILL
from typing import TYPE_CHECKING

from ulak.compute.model import TaskStatus
from ulak.compute.work import FINAL, SENT, Finished, Outcome, Work

if TYPE_CHECKING:
    from ulak.compute.dispatcher import Dispatcher
    from ulak.compute.hand import Hand


class Bell:
    """Wakes one thread out of its poll."""

    __slots__ = ("descriptor",)

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __call__(self) -> None:
        os.eventfd_write(self.descriptor, 1)

    def __del__(self) -> None:
        os.close(self.descriptor)


class _Ear(threading.local):
    def __init__(self) -> None:
        self.bell = Bell()
        self.watch = select.poll()
        self.watch.register(self.bell.descriptor, select.POLLIN)


_ear = _Ear()


def _grow_new_ears() -> None:
    """In a fork: the old ones would be shared with the parent."""
    global _ear  # noqa: PLW0603 - one per process, as threads' own things are
    _ear = _Ear()


os.register_at_fork(after_in_child=_grow_new_ears)


class Attendant:
    def __init__(self, dispatcher: Dispatcher, tell: Callable[[Finished], None]) -> None:
        self._dispatcher, self._tell = dispatcher, tell

    def attend(self, work: Work, seconds: float | None) -> None:
        """Return when the work is over, or when somebody else must be waited for, or when the time is."""
        ear = _ear
        begun = self._begin(work, ear.bell)
        if begun is None:
            return
        hand, descriptor = begun
        ear.watch.register(descriptor, select.POLLIN)
        try:
            if self._is_told(ear, seconds):
                self._hear(hand, work)
        finally:
            ear.watch.unregister(descriptor)
            if hand.attended is work:
                self._end(hand, work)

    def _begin(self, work: Work, bell: Bell) -> tuple[Hand, int] | None:
        dispatcher = self._dispatcher
        with dispatcher.lock:
            hand = work.hand
            if work.state != SENT or hand is None or len(hand.inflight) != 1 or hand.attended is not None:
                return None
            if not dispatcher.mute(hand):
                return None
            hand.attended = work
            work.future.bell = bell
            return hand, hand.descriptor

    def _is_told(self, ear: _Ear, seconds: float | None) -> bool:
        """Whether the worker, alive and nothing else, has something to say."""
        events = ear.watch.poll(None if seconds is None else math.ceil(max(seconds, 0.0) * 1000))
        if len(events) == 1 and events[0][1] == select.POLLIN and events[0][0] != ear.bell.descriptor:
            return True
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(ear.bell.descriptor)
        return False

    def _hear(self, hand: Hand, work: Work) -> None:
        dispatcher, finished = self._dispatcher, Finished()
        try:
            with dispatcher.lock:
                dispatcher.take_reports(hand, finished)
                self._release(hand, work)
            self._tell(finished)
        except BaseException:  # an interrupt of the caller's: what it left half done must not stay so
            self._mend(hand, work, finished)
            raise

    def _end(self, hand: Hand, work: Work) -> None:
        with self._dispatcher.lock:
            self._release(hand, work)

    def _release(self, hand: Hand, work: Work) -> None:
        hand.attended = None
        work.future.bell = None
        self._dispatcher.unmute(hand)

    def _mend(self, hand: Hand, work: Work, finished: Finished) -> None:
        """The worker is replaced. The work is told if it was over, and otherwise runs again."""
        with self._dispatcher.lock:
            if work.state == SENT and work.hand is hand:
                hand.inflight.setdefault(work.number, work)
            hand.kill(SIGKILL)
        self._tell([one for one in finished if not one[0].future.done()])
        if work.state == FINAL and not work.future.done():
            work.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts))
