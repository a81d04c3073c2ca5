"""The components' counts and states in plain dictionaries. Called under the dispatcher's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulak.compute.pool.worker_handle import WorkerHandle

if TYPE_CHECKING:
    from ulak.compute.pool.fleet import Fleet
    from ulak.compute.pool.queues import Queues


def of_pool(queues: Queues, fleet: Fleet) -> dict[str, dict[str, Any]]:
    workers = list(fleet.workers())
    return {
        "input_queue": {
            "total_put": queues.total_put,
            "total_dropped": queues.total_dropped,
            "depth": {kind.value: queue.depth for kind, queue in queues.by_type.items()},
        },
        "process_pool": {
            "unfinished": queues.unfinished,
            "total_finished": queues.total_finished,
            "total_retried": queues.total_retried,
            "total_crashed": queues.total_crashed,
            "restarts": fleet.restarts,
            "spares": fleet.spare_count,
            "wait_seconds": queues.wait_seconds,
            "run_seconds": queues.run_seconds,
        },
        "thread_pool": {"active_count": sum(worker.active_count for worker in workers if worker.threads)},
        "workers": {worker.name: _of_worker(worker) for worker in workers},
    }


def _of_worker(worker: WorkerHandle) -> dict[str, Any]:
    return {
        "pid": worker.pid,
        "status": worker.status,
        "active_count": worker.active_count,
        "in_flight": worker.load,
        "total_done": worker.done,
        "pace_seconds": worker.pace,
        "tasks": [str(work.label) for work in worker.inflight.values()],
    }


def status_of(queues: Queues, fleet: Fleet, *, over: bool) -> dict[str, str]:
    free = all(queues.has_free(kind) for kind in queues.by_type)
    return {
        "input_queue": "closed" if queues.closing else "accepting" if free else "full",
        "process_pool": _of_fleet(fleet, over=over),
        "thread_pool": "busy" if any(worker.threads and worker.inflight for worker in fleet.workers()) else "idle",
        **{worker.name: worker.status for worker in fleet.workers()},
    }


def _of_fleet(fleet: Fleet, *, over: bool) -> str:
    if fleet.closing:
        return "closed" if over else "closing"
    return "paused" if fleet.paused else "running"
