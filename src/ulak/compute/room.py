"""The compute room: the handlers of durable tasks, the process lane for any other kind, and `run` for other rooms."""

from __future__ import annotations

from functools import partial

from ulak.compute.jobs import KINDS, MAX_RETRIES, Runs
from ulak.compute.lane import ProcessLane
from ulak.compute.records import prune
from ulak.compute.service import Compute
from ulak.settings import Compute as Section
from ulak.spine.handler import Handler
from ulak.spine.room import Host, Room

# Tasks with the engine for each place where one can run: the second hides the way through the store.
AHEAD = 2


def compute_room(host: Host) -> Room[Compute]:
    section = host.settings.compute
    service = Compute(section, host)
    runs = Runs(service.engine, section.timeout_seconds)

    return Room(
        "compute",
        service,
        handlers=tuple(_handler(section, kind, service.places(task_type), runs) for task_type, kind in KINDS.items()),
        lanes={"process": ProcessLane(service.engine, service.close)},
        ports={"run": service.run},
        prunes={"compute_task": partial(prune, keep_millis=_kept_millis(host))},
        gauges=service.gauges,
    )


def _kept_millis(host: Host) -> int:
    """A task can be asked for while its job is in the history or among the dead letters."""
    return round(max(host.settings.spine.history_days, host.settings.spine.dead_days) * 86_400_000)


def _handler(section: Section, kind: str, places: int, runs: Runs) -> Handler:
    return Handler(
        kind,
        runs.run,
        concurrency=AHEAD * places,
        max_attempts=MAX_RETRIES + 1,
        # The engine ends a run in time; this is only for when it can't, and includes the wait for a worker.
        timeout_seconds=(AHEAD + 1) * section.timeout_seconds + 15,
        capacity=section.capacity,
    )
