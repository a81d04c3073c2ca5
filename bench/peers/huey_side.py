"""Huey on SQLite with fsync (the promise that we make), and its real consumer in a process of its own.

Settings: WAL (its default), results off (a task that returns None stores none anyway), a short poll so that a
consumer that has caught up does not sleep. `python -m bench.sweep` compares the worker settings.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from typing import Any

from huey import SqliteHuey

from bench.child import CONTEXT
from bench.load import PAYLOAD, flood_from_threads, produce_jobs_from_threads

WORKERS = 1  # more workers only contend for the same file lock
WORKER_TYPE = "thread"
POLL_SECONDS = 0.001


def enqueue(path: str, producers: int, seconds: float) -> float:
    """Durable enqueues per second."""
    send = _task(_open(path), lambda: None)
    return flood_from_threads(lambda: send(PAYLOAD), producers, seconds)


def end_to_end(path: str, producers: int, jobs: int, workers: int = WORKERS, worker_type: str = WORKER_TYPE) -> float:
    """Jobs per second from the first enqueue to the last one run, producers and consumer together."""
    finished, ready = CONTEXT.Value("i", 0), CONTEXT.Event()
    send = _task(_open(path), lambda: None)
    consumer = CONTEXT.Process(target=_consume, args=(path, workers, worker_type, finished, ready))
    consumer.start()
    try:
        ready.wait()
        begins = time.perf_counter()
        produce_jobs_from_threads(lambda: send(PAYLOAD), producers, jobs)
        while finished.value < jobs:
            time.sleep(0.001)
        return jobs / (time.perf_counter() - begins)
    finally:
        consumer.kill()
        consumer.join()


def _consume(path: str, workers: int, worker_type: str, finished: Synchronized[int], ready: Event) -> None:
    def tick() -> None:
        with finished.get_lock():
            finished.value += 1

    huey = _open(path)
    _task(huey, tick)
    consumer = huey.create_consumer(
        workers=workers,
        worker_type=worker_type,
        initial_delay=POLL_SECONDS,
        max_delay=POLL_SECONDS,
        periodic=False,
    )
    ready.set()
    consumer.run()


def _open(path: str) -> Any:
    logging.getLogger("huey").setLevel(logging.ERROR)
    return SqliteHuey(filename=path, fsync=True, results=False)


def _task(huey: Any, finish: Callable[[], None]) -> Callable[[object], object]:
    def send(_: object) -> None:
        finish()

    # the name must be the same in the producing and the consuming process
    task: Callable[[object], object] = huey.task(name="send")(send)
    return task
