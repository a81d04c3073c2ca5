"""The parent's thread and table: accepts work, gives it to workers, takes outcomes.

Work is accepted on the caller's thread and, when a worker is idle, sent from there too. Everything else happens on the
dispatcher's thread. The lock guards the table; nobody else's code is ever called while it is held.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from time import monotonic
from typing import Any

from ulak.compute import decide, metrics
from ulak.compute.backend import Shutdown
from ulak.compute.calls import failure
from ulak.compute.carriage import NOT_READY, OK
from ulak.compute.closing import Closing
from ulak.compute.fleet import Fleet
from ulak.compute.hand import Hand
from ulak.compute.lines import Line
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings
from ulak.compute.timetable import Timetable
from ulak.compute.warden import Warden
from ulak.compute.work import ASIDE, FINAL, QUEUED, SENT, Finished, Outcome, ScriptTrace, Work
from ulak.errors import Refused, Unavailable

_SILENCE_SECONDS = 0.005  # a worker with work sent ahead that says nothing for longer is asked to return it


class Dispatcher:
    """The local backend: worker processes on this machine."""

    def __init__(self, settings: ComputeSettings, initializer: bytes | None = None) -> None:
        self._capacity = settings.input_capacity
        self._recycle_tasks = settings.recycle_tasks or sys.maxsize
        self.lock = threading.Lock()
        self.lines = {kind: Line() for kind in TaskType}
        self.idle: dict[TaskType, dict[Hand, None]] = {kind: {} for kind in TaskType}
        self.fleet = Fleet(settings, initializer)
        self.timers = Timetable()
        self.unfinished = 0
        self.total_put = self.total_dropped = self.total_retried = self.total_crashed = self.total_finished = 0
        self.wait_seconds = self.run_seconds = 0.0
        self._warden = Warden(self, settings)
        self._hands: dict[int, Hand] = {}
        self._deep: set[Hand] = set()  # have work sent ahead
        self._waiters: deque[Callable[[], None]] = deque()  # want room in a line
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._bell)  # not earlier: a late `wake` must not ring somebody else's
        self._poll = select.epoll()
        self._poll.register(self._bell, select.EPOLLIN)
        self._wanted: set[TaskType] = set()
        self._untidy = False  # the crews' strength, the lines or the waiters need a look
        self.broken: BrokenProcessPool | None = None  # no worker can be made ready
        self.closing = False  # takes no more work
        self.closing_workers = False  # starts no more workers
        self._over = False
        self._drained, self._emptied = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ulak-compute", daemon=True)
        self._thread.start()

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
        _tell(finished)
        return len(finished)

    def take_all(self) -> list[Work]:
        """Everything that waits, taken out of the lines."""
        return [work for line in self.lines.values() for work in line.drain()]

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
                self._drained.set()
        self.wake()
        if not self._thread.is_alive():
            return Shutdown(True)
        return Closing(self, self._warden).run(drain_seconds)

    def wait_drained(self, seconds: float | None) -> bool:
        return self._drained.wait(seconds)

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

    def _conclude(self, work: Work) -> None:
        work.state = FINAL
        self.unfinished -= 1
        self.total_finished += 1
        if self.closing and not self.unfinished:
            self._drained.set()

    # -- giving, under the lock ------------------------------------------------------------------------------------

    def give(self, hand: Hand, works: list[Work]) -> None:
        now = monotonic()
        if not hand.inflight:
            hand.heard_at = now
            self.idle[works[0].options.task_type].pop(hand, None)
        for work in works:
            work.state, work.hand = SENT, hand
            self.wait_seconds += now - work.since
            hand.inflight[work.number] = work
            work.future.mark_running()
            if work.options.timeout_seconds is not None:
                self._warden.watch(work, hand)
        if not hand.write([work.message() for work in works]):
            self._poll.modify(hand, select.EPOLLIN | select.EPOLLOUT)
        if len(hand.inflight) > hand.hands:
            self._deep.add(hand)

    def feed(self, kind: TaskType) -> None:
        line = self.lines[kind]
        if line.suspects:
            self._feed_suspects(kind, line)
        if line.depth:
            for hand, share in decide.share(line.depth, self._open_hands(kind, line)):
                if works := line.take(share):
                    self.give(hand, works)

    def _free_hand(self, kind: TaskType) -> Hand | None:
        """Who could start it now: the longest idle, or of the IO workers the least loaded with a free thread."""
        idle = self.idle[kind]
        if idle:
            return next(iter(idle))
        if kind is TaskType.CPU_BOUND:
            return None
        free = [hand for hand in self.fleet.crews.get(kind, ()) if hand.room > 0 and hand.load < hand.hands]
        return min(free, key=lambda hand: hand.load, default=None)

    def _feed_suspects(self, kind: TaskType, line: Line) -> None:
        while line.suspects and (idle := self.idle[kind]):
            work = line.suspects.popleft()
            if work.state == ASIDE:
                hand = next(iter(idle))
                hand.alone = True
                self.give(hand, [work])

    def _open_hands(self, kind: TaskType, line: Line) -> list[Hand]:
        """Who may get work; while a suspect waits, the least loaded is left to become idle for it."""
        hands = [hand for hand in self.fleet.crews.get(kind, ()) if hand.room > 0]
        if line.suspects and hands:
            hands.remove(min(hands, key=lambda hand: hand.load))
        return hands

    def rest(self, hand: Hand) -> None:
        """A worker with nothing to do: to the idle ones, or home when it is retiring."""
        hand.alone = False
        self._deep.discard(hand)
        if hand.retiring:
            self._warden.dismiss(hand)
        elif hand.kind is not None:
            hand.idle_since = monotonic()
            self.idle[hand.kind][hand] = None

    def hold(self, hand: Hand) -> None:
        """Give it nothing more."""
        self._deep.discard(hand)
        if hand.kind is not None:
            self.idle[hand.kind].pop(hand, None)

    def take_back(self, works: list[Work]) -> None:
        """What was accepted goes back to the front of its line."""
        for work in works:
            work.state, work.hand = QUEUED, None
        if works:
            self.lines[works[0].options.task_type].put_back(works)

    # -- on the dispatcher's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Whoever is told wakes up and wants the interpreter, so telling is the last thing before going to sleep."""
        self._warden.open_nursery()
        self._warden.start_patrol()
        pause = 0.0
        while not self._over:
            finished: Finished = []
            for descriptor, mask in self._poll.poll(pause):
                self._handle(descriptor, mask, finished)
            self._keep_house(finished)
            with self.lock:
                pause = self._pause()
            for work, outcome in finished:
                work.finish(work, outcome)
        self._warden.close_nursery()
        self._poll.close()

    def _pause(self) -> float:
        """How long to sleep when nothing happens: to the next timer, or until a deep worker's silence is suspicious."""
        pause = self.timers.pause(monotonic())
        return _SILENCE_SECONDS if self._deep and pause > _SILENCE_SECONDS else pause

    def _handle(self, descriptor: int, mask: int, finished: Finished) -> None:
        hand = self._hands.get(descriptor)
        if hand is not None:
            self._hear(hand, mask, finished)
        elif descriptor == self._bell:
            os.eventfd_read(self._bell)
        else:
            self._warden.hear(finished)

    def _hear(self, hand: Hand, mask: int, finished: Finished) -> None:
        """The worker's next work goes out before anybody is told of the last."""
        reports = hand.read()
        with self.lock:
            if mask & select.EPOLLOUT and hand.flush():
                self._poll.modify(hand, select.EPOLLIN)
            for report in reports:
                self.apply(hand, report, finished)
            if hand.kind is not None:
                line = self.lines[hand.kind]
                if line.depth or line.suspects:
                    self.feed(hand.kind)
        if not reports and mask & select.EPOLLHUP:
            self.forget(hand)  # its death is told by the nursery

    def _keep_house(self, finished: Finished) -> None:
        now = monotonic()
        if not (self._deep or self._waiters or self._untidy or self.timers.is_due(now)):
            return
        with self.lock:
            self.timers.run(now, finished)
            self._untidy = False
            self._warden.keep_strength(self._wanted)
            for hand in self._deep:
                self._listen(hand, now)
            for kind in self._wanted:
                self.feed(kind)
            waiters = self._admitted()
            if self.closing_workers and not self.fleet.everyone():
                self._emptied.set()
        for callback in waiters:
            callback()

    def apply(self, hand: Hand, report: tuple[Any, ...], finished: Finished) -> None:
        busy, outcomes, returned = report
        hand.heard_at, hand.rung = monotonic(), False
        self.run_seconds += busy
        hand.done += len(outcomes)
        for number, code, blob, trace in outcomes:
            work = hand.inflight.pop(number, None)
            if work is not None:
                self._take(work, hand, code, blob, trace, finished)
            elif number == NOT_READY:
                self._break(blob, finished)
        if returned:
            self.take_back([work for number in returned if (work := hand.inflight.pop(number, None))])
            hand.limit = hand.hands  # no more ahead of whatever takes so long
        elif hand.inflight or self.lines[hand.kind or TaskType.CPU_BOUND].depth:
            hand.learn(busy, len(outcomes))  # a pace is needed only where there is a choice of how much to send
        if not hand.inflight:
            self.rest(hand)
        elif len(hand.inflight) <= hand.hands:
            self._deep.discard(hand)
        if hand.done >= self._recycle_tasks and not hand.retiring:
            self._warden.replace(hand)

    def _take(self, work: Work, hand: Hand, code: int, blob: bytes, trace: Any, finished: Finished) -> None:
        work.attempts += 1
        if code == OK:
            status = TaskStatus.SUCCESS
        elif work.options.retries_failures and work.attempts <= work.options.max_retries:
            self._warden.retry_later(work)
            return
        else:
            status = TaskStatus.FAILED
        self._conclude(work)
        kept = ScriptTrace(*trace) if trace else None
        finished.append((work, Outcome(status, blob, None, kept, work.attempts, hand.name)))

    def _break(self, blob: bytes, finished: Finished) -> None:
        """The initializer failed: as with the stdlib's pool, nothing that waits can run any more."""
        self.broken = BrokenProcessPool(f"a worker's initializer failed: {failure('the initializer', blob)!r}")
        self.closing_workers = True
        works = self.take_all() + [work for hand in self.fleet.workers() for work in hand.inflight.values()]
        for hand in self.fleet.workers():
            hand.inflight.clear()
        for work in works:
            self.finish(work, Outcome(TaskStatus.CRASHED, b"", self.broken), finished)

    def finish(self, work: Work, outcome: Outcome, finished: Finished) -> None:
        self._conclude(work)
        finished.append((work, outcome))

    def _listen(self, hand: Hand, now: float) -> None:
        if not hand.rung and now - hand.heard_at > _SILENCE_SECONDS:
            hand.ring()

    def _admitted(self) -> list[Callable[[], None]]:
        """Those waiting for room are all called when there is some; who comes too late waits again."""
        if not self._waiters or not (self.closing or any(self.has_room(kind) for kind in TaskType)):
            return []
        waiters, self._waiters = list(self._waiters), deque()
        return waiters

    def has_room(self, kind: TaskType) -> bool:
        return self._capacity is None or self.lines[kind].depth < self._capacity

    def attach(self, hand: Hand) -> None:
        self._hands[hand.fileno()] = hand
        self._poll.register(hand, select.EPOLLIN)

    def forget(self, hand: Hand) -> None:
        if self._hands.pop(hand.fileno(), None) is not None:
            self._poll.unregister(hand)

    def listen_to(self, descriptor: int) -> None:
        self._poll.register(descriptor, select.EPOLLIN)

    def stop_listening(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)


def _tell(finished: Finished) -> None:
    for work, outcome in finished:
        work.finish(work, outcome)
