"""What the components count and how they are, in plain dictionaries. Under the dispatcher's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulak.compute.hand import Hand

if TYPE_CHECKING:
    from ulak.compute.dispatcher import Dispatcher


def of_dispatcher(dispatcher: Dispatcher) -> dict[str, dict[str, Any]]:
    workers = list(dispatcher.fleet.workers())
    return {
        "input_queue": {
            "total_put": dispatcher.total_put,
            "total_dropped": dispatcher.total_dropped,
            "depth": {kind.value: line.depth for kind, line in dispatcher.lines.items()},
        },
        "process_pool": {
            "unfinished": dispatcher.unfinished,
            "total_finished": dispatcher.total_finished,
            "total_retried": dispatcher.total_retried,
            "total_crashed": dispatcher.total_crashed,
            "restarts": dispatcher.fleet.restarts,
            "spares": dispatcher.fleet.spare_count,
            "wait_seconds": dispatcher.wait_seconds,
            "run_seconds": dispatcher.run_seconds,
        },
        "thread_pool": {"active_count": sum(len(hand.marks.running()) for hand in workers if hand.threads)},
        "workers": {hand.name: _of_hand(hand) for hand in workers},
    }


def _of_hand(hand: Hand) -> dict[str, Any]:
    return {
        "pid": hand.pid,
        "status": hand.status,
        "active_count": len(hand.marks.running()),
        "in_flight": hand.load,
        "total_done": hand.done,
        "pace_seconds": hand.pace,
    }


def status_of(dispatcher: Dispatcher) -> dict[str, str]:
    room = all(dispatcher.has_room(kind) for kind in dispatcher.lines)
    return {
        "input_queue": "closed" if dispatcher.closing else "accepting" if room else "full",
        "process_pool": "closing" if dispatcher.closing_workers else "paused" if dispatcher.fleet.paused else "running",
        **{hand.name: hand.status for hand in dispatcher.fleet.workers()},
    }
