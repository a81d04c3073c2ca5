"""The backend on a Ray cluster (`ulak[ray]`): work goes out in batches; ids, attempts, deadlines and results stay here.

Ray costs milliseconds per task, so many tasks make one of Ray's. When a batch is lost with its worker or node, nobody
knows which of its tasks was to blame: each is sent again alone, and only a task that was alone is charged an attempt.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Any

from ulak.backoff import Backoff
from ulak.compute.engine.backend import Shutdown
from ulak.compute.engine.options import EngineOptions
from ulak.compute.engine.work import ASIDE, FINAL, QUEUED, SENT, Finished, Outcome, Work, deliver
from ulak.compute.errors import Crashed, TimedOut
from ulak.compute.model import TaskStatus, TaskType
from ulak.compute.pool.cpus import usable_cpus
from ulak.compute.pool.queues import TaskQueue
from ulak.compute.ray.work import run_batch
from ulak.compute.worker.parcel import Packed, inline
from ulak.compute.worker.protocol import OK
from ulak.compute.worker.runner import Role
from ulak.errors import Misconfigured, Refused, Unavailable

_MAX_BATCH = 100
_LOOK_SECONDS = 0.01  # how long one look at the cluster may block the taking of new work
_IO_CPUS = 0.01  # of a core, for a batch that mostly waits


class RayBackend:
    """`Engine(backend=RayBackend(options, address="auto"))`. Scripts must lie under the same root on every node."""

    loads_main = False

    def __init__(self, options: EngineOptions, address: str | None = None) -> None:
        self._options = options
        self._ray = _load()
        self._started = not self._ray.is_initialized()
        if self._started:
            cpus = (options.cpu_workers or usable_cpus()) if address is None else None
            self._ray.init(address=address, num_cpus=cpus, include_dashboard=False, log_to_driver=False)
        self._remote = self._ray.remote(max_retries=0)(run_batch)
        self._slots = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._lock = threading.Condition()
        self._queues = {kind: TaskQueue() for kind in TaskType}
        self._batches: dict[Any, list[Work]] = {}
        self._later: list[tuple[float, int, Work]] = []
        self._waiters: list[Callable[[], None]] = []
        self._retries = Backoff(first_seconds=options.retry_seconds, cap_seconds=60.0)
        self._numbers = count()
        self._counted = dict.fromkeys(("put", "dropped", "retried", "crashed", "finished", "lost"), 0)
        self._seconds = {"wait": 0.0, "run": 0.0}
        self._unfinished = 0
        self._closing = self._over = False
        self._thread = threading.Thread(target=self._run, name="ulak-ray", daemon=True)
        self._thread.start()

    # -- on the caller's thread ------------------------------------------------------------------------------------

    def submit(self, work: Work) -> None:
        queue = self._queues[work.options.task_type]
        capacity = self._options.input_capacity
        with self._lock:
            if self._closing:
                raise Unavailable("the engine is shut down; make a new one")
            if capacity is not None and queue.depth >= capacity:
                raise Refused(f"{queue.depth} tasks wait already; submit later or raise input_capacity")
            self._counted["put"] += 1
            self._counted["retried"] += work.attempts > 0  # those before it are kept elsewhere
            self._unfinished += 1
            queue.put(work)
            self._lock.notify_all()

    def cancel(self, work: Work, *, running: bool) -> bool:
        with self._lock:
            if work.state == QUEUED:
                self._queues[work.options.task_type].depth -= 1
            elif work.state == SENT and running:
                self._recall(work)
            elif work.state != ASIDE:
                return False
            self._conclude(work)
        work.finish(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts))
        return True

    def cancel_waiting(self) -> int:
        finished: Finished = []
        with self._lock:
            for queue in self._queues.values():
                for work in queue.drain():
                    self._end(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts), finished)
        deliver(finished)
        return len(finished)

    def when_free(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._waiters.append(callback)
            self._lock.notify_all()

    def is_running(self, work: Work) -> bool:
        return work.state == SENT

    def drop(self) -> None:
        with self._lock:
            self._counted["dropped"] += 1

    def metrics(self) -> dict[str, dict[str, Any]]:
        with self._lock:
            counted, sent = self._counted, sum(map(len, self._batches.values()))
            return {
                "input_queue": {
                    "total_put": counted["put"],
                    "total_dropped": counted["dropped"],
                    "depth": {kind.value: queue.depth for kind, queue in self._queues.items()},
                },
                "process_pool": {
                    "unfinished": self._unfinished,
                    "total_finished": counted["finished"],
                    "total_retried": counted["retried"],
                    "total_crashed": counted["crashed"],
                    "restarts": counted["lost"],
                    "spares": 0,
                    "wait_seconds": self._seconds["wait"],
                    "run_seconds": self._seconds["run"],
                },
                "thread_pool": {"active_count": 0},
                "workers": {"ray": _of_cluster(sent, len(self._batches), counted["finished"])},
            }

    def status(self) -> dict[str, str]:
        with self._lock:
            free = all(self._has_free(queue) for queue in self._queues.values())
            return {
                "input_queue": "closed" if self._closing else "accepting" if free else "full",
                "process_pool": "closed" if self._over else "closing" if self._closing else "running",
                "thread_pool": "busy" if self._free(TaskType.IO_BOUND) < self._options.io_workers else "idle",
                "ray": "busy" if self._batches else "idle",
            }

    def close(self, drain_seconds: float | None) -> Shutdown:
        finished: Finished = []
        with self._lock:
            self._closing = True
            self._lock.notify_all()
            drained = self._lock.wait_for(lambda: not self._unfinished, drain_seconds)
            waiting = [work for queue in self._queues.values() for work in queue.drain()]
            running = [work for batch in self._batches.values() for work in batch if work.state == SENT]
            for work in waiting + running:
                self._end(work, Outcome(TaskStatus.CANCELLED, attempts=work.attempts), finished)
            for reference in self._batches:
                self._kill(reference)
            self._over = True
            self._lock.notify_all()
        deliver(finished)
        self._thread.join()
        if self._started:
            self._ray.shutdown()
        return Shutdown(drained, len(waiting), len(running))

    # -- on our own thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._over:
            finished: Finished = []
            with self._lock:
                self._wait()
                self._wake_due()
                self._send_all()
                self._check_deadlines(finished)
                references = list(self._batches)
                waiters = self._admitted()
            for reference in self._ready(references):
                self._collect(reference, finished)
            deliver(finished)
            for callback in waiters:
                callback()

    def _wait(self) -> None:
        """Until there is something to do; while anything is out there, the cluster is looked at instead."""
        if (
            not self._batches
            and not self._over
            and not any(queue.depth or queue.suspects for queue in self._queues.values())
        ):
            self._lock.wait(max(0.0, self._later[0][0] - monotonic()) if self._later else None)

    def _ready(self, references: list[Any]) -> list[Any]:
        if not references:
            return []
        ready, _ = self._ray.wait(references, num_returns=len(references), timeout=_LOOK_SECONDS, fetch_local=True)
        return list(ready)

    def _send_all(self) -> None:
        for kind, queue in self._queues.items():
            while (queue.depth or queue.suspects) and self._free(kind):
                if works := self._take(queue):
                    self._send(kind, works)

    def _free(self, kind: TaskType) -> int:
        """One batch at a time for each core, so that a sent one runs at once; IO batches hardly need any."""
        limit = self._slots if kind is TaskType.CPU_BOUND else self._options.io_workers
        return limit - sum(works[0].options.task_type is kind for works in self._batches.values())

    def _take(self, queue: TaskQueue) -> list[Work]:
        """A batch: whatever is suspect or has a deadline goes alone."""
        while queue.suspects:
            work = queue.suspects.popleft()
            if work.state == ASIDE:
                return [work]
        works: list[Work] = []
        size = min(_MAX_BATCH, max(1, queue.depth // (2 * self._slots)))
        while len(works) < size and queue.depth:
            work = queue.take(1)[0]
            if work.options.timeout_seconds is not None and works:
                queue.put_back([work])
                break
            works.append(work)
            if work.options.timeout_seconds is not None:
                break
        return works

    def _send(self, kind: TaskType, works: list[Work]) -> None:
        options, io = self._options, kind is TaskType.IO_BOUND
        role = Role("ray", options.io_threads if io else 0, options.script_root, options.capture_bytes)
        now = monotonic()
        for work in works:
            work.state = SENT
            work.future.mark_running()
            self._seconds["wait"] += now - work.since
            work.since = now  # from here on: when it was sent
        messages = [tuple(map(inline, work.message())) for work in works]
        remote = self._remote.options(num_cpus=_IO_CPUS if io else 1)
        self._batches[remote.remote(tuple(role), messages)] = works

    def _collect(self, reference: Any, finished: Finished) -> None:
        outcomes, cause = [], "its outcome is missing"
        try:
            outcomes = self._ray.get(reference)
        except Exception as error:  # noqa: BLE001 - whatever Ray raises, the batch is lost
            cause = str(error)
        with self._lock:
            works = self._batches.pop(reference, [])
            by_number = {work.number: work for work in works if work.state == SENT}
            self._seconds["run"] += monotonic() - works[0].since if works else 0.0
            for number, code, blob, trace in outcomes:
                if (work := by_number.pop(number, None)) is not None:
                    self._settle(work, code, blob, trace, finished)
            if by_number:
                self._lose(list(by_number.values()), len(works) == 1, cause, finished)
            self._lock.notify_all()

    def _settle(self, work: Work, code: int, blob: Packed, trace: Any, finished: Finished) -> None:
        work.attempts += 1
        if code != OK and work.options.retries_failures and work.attempts <= work.options.max_retries:
            self._counted["retried"] += 1
            work.state = ASIDE
            self._queues[work.options.task_type].delayed.add(work)
            due = monotonic() + self._retries.delay_seconds(work.attempts)
            heapq.heappush(self._later, (due, next(self._numbers), work))
            return
        status = TaskStatus.SUCCESS if code == OK else TaskStatus.FAILED
        self._end(work, Outcome(status, blob, None, trace, work.attempts, "ray"), finished)

    def _lose(self, works: list[Work], alone: bool, cause: str, finished: Finished) -> None:
        self._counted["lost"] += 1
        for work in works:
            work.attempts += alone
            self._counted["crashed"] += alone
            if work.attempts > work.options.max_retries:
                error = Crashed.after(work.name, work.attempts, f"on Ray: {cause}")
                self._end(work, Outcome(TaskStatus.CRASHED, b"", error, None, work.attempts, "ray"), finished)
            else:
                work.suspect, work.state = True, ASIDE
                self._queues[work.options.task_type].suspects.append(work)

    def _check_deadlines(self, finished: Finished) -> None:
        """From the sending on: a batch is sent only when there is a core for it."""
        now = monotonic()
        for works in list(self._batches.values()):
            work, seconds = works[0], works[0].options.timeout_seconds
            if seconds is not None and work.state == SENT and now - work.since > seconds:
                work.attempts += 1
                self._recall(work)
                error = TimedOut(f"{work.name} ran longer than {seconds:g} s on Ray and was stopped")
                self._end(work, Outcome(TaskStatus.TIMED_OUT, b"", error, None, work.attempts, "ray"), finished)

    def _recall(self, work: Work) -> None:
        """End its batch on the cluster; the others in it are sent again, alone and not charged."""
        reference = next(reference for reference, works in self._batches.items() if work in works)
        self._kill(reference)

    def _kill(self, reference: Any) -> None:
        with contextlib.suppress(Exception):  # it is over, or its node is
            self._ray.cancel(reference, force=True)

    def _wake_due(self) -> None:
        while self._later and self._later[0][0] <= monotonic():
            work = heapq.heappop(self._later)[2]
            queue = self._queues[work.options.task_type]
            queue.delayed.discard(work)
            if work.state == ASIDE:
                work.state = QUEUED
                queue.put_back([work])

    def _admitted(self) -> list[Callable[[], None]]:
        if not self._closing and not any(self._has_free(queue) for queue in self._queues.values()):
            return []
        waiters, self._waiters = self._waiters, []
        return waiters

    def _has_free(self, queue: TaskQueue) -> bool:
        return self._options.input_capacity is None or queue.depth < self._options.input_capacity

    def _end(self, work: Work, outcome: Outcome, finished: Finished) -> None:
        self._conclude(work)
        finished.append((work, outcome))

    def _conclude(self, work: Work) -> None:
        work.state = FINAL
        self._unfinished -= 1
        self._counted["finished"] += 1
        self._lock.notify_all()


def _load() -> Any:
    try:
        import ray
    except ImportError as error:
        raise Misconfigured("Ray is not installed; install ulak[ray]") from error
    return ray


def _of_cluster(sent: int, batches: int, done: int) -> dict[str, Any]:
    status = "busy" if batches else "idle"
    return {"pid": None, "status": status, "active_count": batches, "in_flight": sent, "total_done": done}
