"""Births, deaths and deadlines: everything the dispatcher does that is not the passing of work. Under its lock."""

from __future__ import annotations

import os
import signal
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ulak.backoff import Backoff
from ulak.compute import decide
from ulak.compute.errors import Crashed, TimedOut
from ulak.compute.hand import Hand
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.settings import ComputeSettings
from ulak.compute.timetable import Act
from ulak.compute.work import ASIDE, FINAL, SENT, Finished, Outcome, Work

if TYPE_CHECKING:
    from ulak.compute.dispatcher import Dispatcher

_RECHECK_SECONDS = 0.02
_MANY_TIMERS = 1000
_MEMORY_CHECK_SECONDS = 1.0
_KNOWN_FUNCTIONS = 1024
_LESSON_SECONDS = 1.0  # an engine that lives shorter is spared the loading in its spare


class Warden:
    def __init__(self, dispatcher: Dispatcher, settings: ComputeSettings) -> None:
        self._dispatcher, self._settings = dispatcher, settings
        self._retries = Backoff(first_seconds=settings.retry_seconds, cap_seconds=60.0)
        self._nursery_descriptor = -1

    # -- births ----------------------------------------------------------------------------------------------------

    def open_nursery(self) -> None:
        """On the dispatcher's thread: the kernel ties the nursery's life to the thread that starts it."""
        nursery = self._dispatcher.fleet.open_nursery()
        self._nursery_descriptor = nursery.fileno()
        self._dispatcher.listen_to(self._nursery_descriptor)

    def close_nursery(self) -> None:
        fleet = self._dispatcher.fleet
        for hand in fleet.everyone():
            self._dispatcher.forget(hand)
            hand.hang_up()
        if fleet.nursery is not None:
            fleet.nursery.close()

    def keep_strength(self, kinds: set[TaskType]) -> None:
        fleet = self._dispatcher.fleet
        if self._dispatcher.closing_workers or fleet.paused:
            return
        for kind in kinds:
            for hand in fleet.fill(kind, monotonic()):
                self._dispatcher.attach(hand)
                self._dispatcher.rest(hand)
        if kinds:
            fleet.stock(monotonic())

    def note_success(self, name: bytes) -> None:
        """A function has run well for the first time: have the spares get to know it, after a while."""
        familiar = self._dispatcher.familiar
        if len(familiar) >= _KNOWN_FUNCTIONS:
            familiar.clear()
        familiar.add(name)
        self._later(_LESSON_SECONDS, partial(self._teach, name))

    def _teach(self, name: bytes, finished: Finished) -> None:
        self._dispatcher.fleet.teach(name)

    # -- what the nursery tells ------------------------------------------------------------------------------------

    def hear(self, finished: Finished) -> None:
        nursery = self._dispatcher.fleet.nursery
        news = nursery.hear() if nursery is not None else []
        with self._dispatcher.lock:
            if news is None:
                self._lose_nursery(finished)
            for verb, who, detail in news or ():
                getattr(self, f"_{verb}")(who, detail, finished)

    def _born(self, token: int, pid: int, finished: Finished) -> None:
        hand = self._dispatcher.fleet.born(token, pid)
        if hand is not None and hand.ending:
            self.end(hand, hand.ending)

    def _unborn(self, token: int, reason: str, finished: Finished) -> None:
        if hand := self._dispatcher.fleet.find_token(token):
            self._bury(hand, f"could not be started: {reason}", finished)

    def _died(self, pid: int, status: int, finished: Finished) -> None:
        if hand := self._dispatcher.fleet.find(pid):
            self._bury(hand, _cause(status), finished)

    def _stopped(self, pid: int, _: int, finished: Finished) -> None:
        if hand := self._dispatcher.fleet.find(pid):
            hand.stopped_at = monotonic()
            self._dispatcher.hold(hand)
            self._later(self._settings.stopped_seconds, partial(self._end_if_stopped, hand, hand.stopped_at))

    def _continued(self, pid: int, _: int, finished: Finished) -> None:
        if hand := self._dispatcher.fleet.find(pid):
            hand.stopped_at = None
            if not hand.inflight:
                self._dispatcher.rest(hand)

    def _end_if_stopped(self, hand: Hand, since: float, finished: Finished) -> None:
        if hand.stopped_at == since:
            hand.kill(signal.SIGKILL)

    def _lose_nursery(self, finished: Finished) -> None:
        fleet = self._dispatcher.fleet
        self._dispatcher.stop_listening(self._nursery_descriptor)
        fleet.lose_nursery()
        for hand in fleet.everyone():
            self._bury(hand, "died with the nursery", finished)
        if not self._dispatcher.closing_workers:
            self.open_nursery()

    # -- deaths ----------------------------------------------------------------------------------------------------

    def _bury(self, hand: Hand, cause: str, finished: Finished) -> None:
        """Take what it still got out, charge what it was running, put the rest back, start another."""
        dispatcher = self._dispatcher
        dispatcher.forget(hand)
        for report in hand.read_rest():
            dispatcher.apply(hand, report, finished)
        guilty = decide.charged(list(hand.inflight), hand.marks.running()) if hand.ending is None else []
        for number in guilty:
            self._charge(hand.inflight.pop(number), hand, cause, finished)
        dispatcher.take_back(list(hand.inflight.values()))
        dispatcher.hold(hand)
        dispatcher.fleet.remove(hand, monotonic(), died_at_work=bool(guilty))
        hand.hang_up()
        dispatcher.tidy_up()
        if pause := dispatcher.fleet.pause_seconds():
            dispatcher.fleet.paused = True
            self._later(pause, self._unpause)

    def _unpause(self, finished: Finished) -> None:
        self._dispatcher.fleet.paused = False

    def _charge(self, work: Work, hand: Hand, cause: str, finished: Finished) -> None:
        work.attempts += 1
        work.hand = None
        self._dispatcher.total_crashed += 1
        if work.attempts > work.options.max_retries:
            text = f"{work.name} ended its worker {work.attempts} times; last, {hand.name} {cause}"
            outcome = Outcome(TaskStatus.CRASHED, b"", Crashed(text), None, work.attempts, hand.name)
            self._dispatcher.finish(work, outcome, finished)
        else:
            work.suspect, work.state = True, ASIDE
            self._dispatcher.lines[work.options.task_type].suspects.append(work)

    # -- deadlines and cancelling ----------------------------------------------------------------------------------

    def watch(self, work: Work, hand: Hand) -> None:
        seconds = work.options.timeout_seconds
        if seconds is not None:
            self._later(seconds, partial(self._check_deadline, work, hand, seconds))

    def _check_deadline(self, work: Work, hand: Hand, seconds: float, finished: Finished) -> None:
        """The time counts from the start at the worker, which may be later than the sending."""
        if work.state != SENT or work.hand is not hand:
            return
        since = hand.marks.running().get(work.number)
        left = seconds if since is None else since + seconds - monotonic()
        if left > 0:
            self._later(left, partial(self._check_deadline, work, hand, seconds))
            return
        work.attempts += 1
        self.pull(work, "timed out")
        error = TimedOut(f"{work.name} ran longer than {seconds:g} s on {hand.name} and was stopped")
        self._dispatcher.finish(
            work, Outcome(TaskStatus.TIMED_OUT, b"", error, None, work.attempts, hand.name), finished
        )

    def pull(self, work: Work, reason: str) -> None:
        """Take work from its worker, whatever it is doing with it."""
        hand = work.hand
        assert hand is not None
        hand.inflight.pop(work.number, None)
        if work.number in hand.marks.running():
            self._free(hand, reason)
        else:
            hand.ring()
            self._later(_RECHECK_SECONDS, partial(self._recheck, hand, work.number, reason))

    def _recheck(self, hand: Hand, number: int, reason: str, finished: Finished) -> None:
        if hand.is_open and number in hand.marks.running():
            self._free(hand, reason)

    def _free(self, hand: Hand, reason: str) -> None:
        """A process can be ended, a thread cannot: an IO worker is replaced and ends when its others are done."""
        if hand.threads and hand.inflight:
            self.replace(hand)
            hand.doomed = True
        else:
            self.end(hand, reason)

    def end(self, hand: Hand, reason: str) -> None:
        """SIGTERM for its whole group, SIGKILL after the grace."""
        hand.ending, hand.retiring = reason, True
        self._dispatcher.hold(hand)
        self._dispatcher.tidy_up()
        hand.kill(signal.SIGTERM)
        self._later(self._settings.kill_grace_seconds, partial(self._kill, hand))

    def _kill(self, hand: Hand, finished: Finished) -> None:
        if hand.is_open:
            hand.kill(signal.SIGKILL)

    # -- retiring --------------------------------------------------------------------------------------------------

    def expect_death(self, hand: Hand) -> None:
        """It hung up. Usually it is dead and the nursery says so; if not, it is of no use any more."""
        self._later(self._settings.kill_grace_seconds, partial(self._kill, hand))

    def retry_later(self, work: Work) -> None:
        work.state, work.hand = ASIDE, None
        self._dispatcher.lines[work.options.task_type].delayed.add(work)
        self._dispatcher.total_retried += 1
        self._later(self._retries.delay_seconds(work.attempts), partial(self._requeue, work))

    def _requeue(self, work: Work, finished: Finished) -> None:
        self._dispatcher.lines[work.options.task_type].delayed.discard(work)
        if work.state == ASIDE:
            self._dispatcher.take_back([work])

    def replace(self, hand: Hand) -> None:
        """The replacement comes first: `keep_strength` counts only who is not retiring."""
        hand.retiring = True
        self._dispatcher.hold(hand)
        self._dispatcher.tidy_up()
        if not hand.inflight:
            self.dismiss(hand)

    def dismiss(self, hand: Hand) -> None:
        """It has nothing left to do: an idle worker leaves when its pipe closes, one with a stuck thread is ended."""
        if hand.doomed:
            self.end(hand, "a task could not be stopped")
        elif hand.ending is None:
            hand.ending = "recycled"
            hand.say_goodbye()

    def start_patrol(self) -> None:
        if self._settings.recycle_seconds is not None or self._settings.recycle_bytes is not None:
            self.patrol([])

    def patrol(self, finished: Finished) -> None:
        """Recycle by age and memory."""
        for hand in list(self._dispatcher.fleet.workers()):
            if not hand.retiring and self._is_old_or_fat(hand):
                self.replace(hand)
        self._later(_MEMORY_CHECK_SECONDS, self.patrol)

    def _is_old_or_fat(self, hand: Hand) -> bool:
        age, weight = self._settings.recycle_seconds, self._settings.recycle_bytes
        if age is not None and monotonic() - hand.born_at > age:
            return True
        return weight is not None and hand.pid is not None and _resident_bytes(hand.pid) > weight

    def _later(self, seconds: float, act: Act) -> None:
        timers = self._dispatcher.timers
        if timers.add(monotonic() + seconds, act):
            self._dispatcher.wake()
        if len(timers) > 2 * self._dispatcher.unfinished + _MANY_TIMERS:
            timers.prune(_is_past)


def _is_past(act: Act) -> bool:
    """The deadline of work that is over; long timeouts of short tasks would otherwise pile up."""
    first = act.args[0] if isinstance(act, partial) and act.args else None
    return isinstance(first, Work) and first.state == FINAL


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = " (out of memory, perhaps)" if number == signal.SIGKILL else ""
        return f"was killed by {signal.Signals(number).name}{hint}"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
