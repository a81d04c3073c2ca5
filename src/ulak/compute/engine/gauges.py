"""The counts of this process's engine as points for Prometheus, with their names and meanings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ulak.spine.telemetry import GaugePoint

GAUGES = {
    "compute_worker_in_flight": "Tasks given to a worker and not back yet.",
    "compute_worker_running": "Tasks that run at a worker now.",
    "compute_worker_done": "Tasks that a worker has finished since it was started.",
    "compute_worker_idle": "1 for a worker that has nothing to do.",
    "compute_queue_depth": "Tasks that wait for a worker, by class.",
    "compute_unfinished": "Tasks accepted by the engine and not over.",
    "compute_accepted": "Tasks accepted since the engine was started.",
    "compute_refused": "Tasks refused because too many waited.",
    "compute_finished": "Tasks that are over since the engine was started.",
    "compute_retries": "Attempts after the first, those of durable tasks included.",
    "compute_crashes": "Attempts that ended with their worker.",
    "compute_restarts": "Workers that died and were replaced.",
    "compute_spares": "Workers that stand ready to take over.",
    "compute_wait_seconds": "Time that tasks have waited for a worker, all together.",
    "compute_run_seconds": "Time that tasks have run, all together.",
    "compute_results_kept": "Results in the engine's cache, by where they are.",
}
_POOL = {
    "unfinished": "compute_unfinished",
    "total_finished": "compute_finished",
    "total_retried": "compute_retries",
    "total_crashed": "compute_crashes",
    "restarts": "compute_restarts",
    "spares": "compute_spares",
    "wait_seconds": "compute_wait_seconds",
    "run_seconds": "compute_run_seconds",
}
_WORKER = {
    "in_flight": "compute_worker_in_flight",
    "active_count": "compute_worker_running",
    "total_done": "compute_worker_done",
}


def points(metrics: dict[str, dict[str, Any]]) -> Iterator[GaugePoint]:
    queue, results = metrics["input_queue"], metrics["output_queue"]
    for task_type, depth in queue["depth"].items():
        yield _point("compute_queue_depth", depth, {"class": task_type})
    yield _point("compute_accepted", queue["total_put"])
    yield _point("compute_refused", queue["total_dropped"])
    for field, name in _POOL.items():
        yield _point(name, metrics["process_pool"][field])
    for worker, counted in metrics["workers"].items():
        yield _point("compute_worker_idle", counted["status"] == "idle", {"worker": worker})
        for field, name in _WORKER.items():
            yield _point(name, counted[field], {"worker": worker})
    yield _point("compute_results_kept", results["in_memory"], {"place": "memory"})
    yield _point("compute_results_kept", results["spilled"], {"place": "disk"})


def _point(name: str, value: float, labels: dict[str, str] | None = None) -> GaugePoint:
    return GaugePoint(f"ulak_{name}", GAUGES[name], labels or {}, float(value))
