"""The dispatcher's table: what waits, who is idle, what is where; and the passing of work. All under the lock."""

from __future__ import annotations

import select
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from time import monotonic
from typing import Any

from ulak.compute import decide
from ulak.compute.calls import failure
from ulak.compute.carriage import CALL, CHUNK, NOT_READY, OK
from ulak.compute.fleet import Fleet
from ulak.compute.hand import Hand
from ulak.compute.lines import Line
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings
from ulak.compute.timetable import Timetable
from ulak.compute.warden import Warden
from ulak.compute.work import ASIDE, FINAL, QUEUED, SENT, Finished, Outcome, Work

_BY_NAME = (CALL, CHUNK)


class Table:
    _warden: Warden

    def __init__(self, settings: ComputeSettings, initializer: bytes | None) -> None:
        self.settings = settings
        self.lock = threading.Lock()
        self.lines = {kind: Line() for kind in TaskType}
        self.idle: dict[TaskType, dict[Hand, None]] = {kind: {} for kind in TaskType}
        self.fleet = Fleet(settings, initializer)
        self.timers = Timetable()
        self.unfinished = 0
        self.total_put = self.total_dropped = self.total_retried = self.total_crashed = self.total_finished = 0
        self.wait_seconds = self.run_seconds = 0.0
        self.broken: BrokenProcessPool | None = None  # no worker can be made ready
        self.closing = False  # takes no more work
        self.closing_workers = False  # starts no more workers
        self.drained = threading.Event()
        self._capacity = settings.input_capacity
        self._recycle_tasks = settings.recycle_tasks or sys.maxsize
        self._deep: set[Hand] = set()  # have work sent ahead
        self._poll = select.epoll()
        self.familiar: set[bytes] = set()  # functions that have run well on a CPU worker

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

    def take_all(self) -> list[Work]:
        """Everything that waits, taken out of the lines."""
        return [work for line in self.lines.values() for work in line.drain()]

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
            if work.body[0] in _BY_NAME and work.body[1] not in self.familiar and not hand.threads:
                self._warden.note_success(work.body[1])
        elif work.options.retries_failures and work.attempts <= work.options.max_retries:
            self._warden.retry_later(work)
            return
        else:
            status = TaskStatus.FAILED
        self._conclude(work)
        finished.append((work, Outcome(status, blob, None, trace, work.attempts, hand.name)))

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

    def _conclude(self, work: Work) -> None:
        work.state = FINAL
        self.unfinished -= 1
        self.total_finished += 1
        if self.closing and not self.unfinished:
            self.drained.set()

    def has_room(self, kind: TaskType) -> bool:
        return self._capacity is None or self.lines[kind].depth < self._capacity
