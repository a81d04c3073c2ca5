"""The end of a dispatcher: drain, cancel what waits, terminate what runs, kill what stays; each step has its limit."""

from __future__ import annotations

import signal
from time import monotonic
from typing import TYPE_CHECKING

from ulak.compute.backend import Shutdown
from ulak.compute.model import TaskStatus
from ulak.compute.work import Finished, Outcome, Work

if TYPE_CHECKING:
    from ulak.compute.dispatcher import Dispatcher
    from ulak.compute.warden import Warden

_GOODBYE_SECONDS = 1.0  # for idle workers to leave by themselves


class Closing:
    def __init__(self, dispatcher: Dispatcher, warden: Warden) -> None:
        self._dispatcher, self._warden = dispatcher, warden

    def run(self, drain_seconds: float | None) -> Shutdown:
        drained = self._dispatcher.wait_drained(drain_seconds)
        waiting, running = ([], []) if drained else self._give_up()
        killed = self._send_home(_GOODBYE_SECONDS)
        self._dispatcher.stop()
        return Shutdown(drained, len(waiting), len(running), killed)

    def _give_up(self) -> tuple[list[Work], list[Work]]:
        """Both what waits and what runs end as cancelled."""
        dispatcher, finished = self._dispatcher, Finished()
        with dispatcher.lock:
            dispatcher.closing_workers = True
            waiting = dispatcher.take_all()
            running = [work for hand in dispatcher.fleet.workers() for work in hand.inflight.values()]
            for work in running:
                self._warden.pull(work, "shut down")
            for work in waiting + running:
                outcome = Outcome(TaskStatus.CANCELLED, attempts=work.attempts)
                dispatcher.finish(work, outcome, finished)
        for work, outcome in finished:
            work.finish(work, outcome)
        return waiting, running

    def _send_home(self, seconds: float) -> int:
        """Idle workers leave when told; the nursery ends who does not, group by group. Returns how many did not."""
        dispatcher = self._dispatcher
        with dispatcher.lock:
            dispatcher.closing_workers = True
            for hand in dispatcher.fleet.everyone():
                hand.retiring = True
                dispatcher.hold(hand)
                if not hand.inflight and hand.ending is None:
                    hand.ending = "shut down"
                    hand.say_goodbye()
                    if hand.kind is None:  # a spare may be in the middle of loading something; it has nothing to lose
                        hand.kill(signal.SIGKILL)
        dispatcher.tidy_up()
        dispatcher.wait_empty(monotonic() + seconds)
        with dispatcher.lock:
            left = dispatcher.fleet.everyone()
            for hand in left:
                hand.kill(signal.SIGKILL)
        return len(left)
