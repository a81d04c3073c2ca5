"""The end of a dispatcher: drain, cancel what waits, terminate what runs, kill what stays; each step has its limit."""

from __future__ import annotations

import signal
from time import monotonic
from typing import TYPE_CHECKING

from ulak.compute.engine.backend import Shutdown
from ulak.compute.engine.work import Finished, Outcome, Work, deliver
from ulak.compute.model import TaskStatus

if TYPE_CHECKING:
    from ulak.compute.pool.dispatcher import Dispatcher

_GOODBYE_SECONDS = 1.0  # for idle workers to leave by themselves


class Closing:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def run(self, drain_seconds: float | None) -> Shutdown:
        drained = self._dispatcher.queues.drained.wait(drain_seconds)
        waiting, running = ([], []) if drained else self._give_up()
        killed = self._send_home(_GOODBYE_SECONDS)
        self._dispatcher.stop()
        return Shutdown(drained, len(waiting), len(running), killed)

    def _give_up(self) -> tuple[list[Work], list[Work]]:
        """Both what waits and what runs end as cancelled."""
        dispatcher, finished = self._dispatcher, Finished()
        with dispatcher.lock:
            dispatcher.fleet.closing = True
            waiting = dispatcher.queues.take_all()
            running = [work for worker in dispatcher.fleet.workers() for work in worker.inflight.values()]
            for work in running:
                dispatcher.supervisor.pull(work, "shut down")
            for work in waiting + running:
                outcome = Outcome(TaskStatus.CANCELLED, attempts=work.attempts)
                dispatcher.queues.finish(work, outcome, finished)
        deliver(finished)
        return waiting, running

    def _send_home(self, seconds: float) -> int:
        """Have idle workers leave; the fork server ends the others, group by group. Returns how many stayed."""
        dispatcher = self._dispatcher
        with dispatcher.lock:
            dispatcher.fleet.closing = True
            for worker in dispatcher.fleet.everyone():
                worker.retiring = True
                dispatcher.queues.hold(worker)
                if not worker.inflight and worker.ending is None:
                    worker.ending = "shut down"
                    worker.say_goodbye()
                    if worker.kind is None:  # a spare may be in the middle of loading something; it has nothing to lose
                        worker.kill(signal.SIGKILL)
        dispatcher.wake()
        dispatcher.wait_empty(monotonic() + seconds)
        with dispatcher.lock:
            left = dispatcher.fleet.everyone()
            for worker in left:
                worker.kill(signal.SIGKILL)
        return len(left)
