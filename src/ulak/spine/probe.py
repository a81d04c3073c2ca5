"""Named points at which a test may crash, delay or fail the process. They cost one look-up when nobody listens."""

from __future__ import annotations

from collections.abc import Callable

listeners: dict[str, Callable[[], None]] = {}

POINTS = (
    "writer.before_batch",
    "writer.before_commit",
    "writer.after_commit",
    "worker.before_claim",
    "worker.claimed",
    "worker.before_handler",
    "worker.after_handler",
    "worker.before_settle",
    "worker.settled",
    "timers.before_promote",
    "timers.promoted",
    "rescuer.before_rescue",
    "rescuer.rescued",
    "cron.before_fire",
    "stop.before_release",
    *(f"changes.{step}" for step in ("fetch", "read", "export", "compare", "write", "written", "keep", "judged")),
)


def reach(point: str) -> None:
    listener = listeners.get(point) if listeners else None
    if listener is not None:
        listener()


def listen(point: str, listener: Callable[[], None]) -> None:
    if point not in POINTS:
        raise ValueError(f"no probe {point!r}; there are: {', '.join(POINTS)}")
    listeners[point] = listener


def clear() -> None:
    listeners.clear()
