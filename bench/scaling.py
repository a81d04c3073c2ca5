"""How much more work two of a kind do than one: the engine's workers beside plain processes, all in turns.

Two kinds of work. *Digests* are a chain in which every step waits for the one before. That leaves much of a core
unused, so it goes on at nearly the same speed when somebody else's program has the core's other hardware thread. A
*loop* of Python does not: on rented cores its speed may change by a factor of two several times a second, for workers
and plain processes alike, and two of them seldom have both cores for themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench import child
from bench.figure import alternate, paired
from ulak.compute import Engine

_WINDOW_SECONDS = 0.6
_AHEAD = 4  # tasks that wait or run: a worker never looks for work in vain, and little is left when the time is over
_BLOCK = bytes(1 << 16)

Work = Callable[[int], object]


def loop(size: int) -> float:
    total = 0.0
    for value in range(size):
        total += value * value
    return total


def digests(size: int) -> None:
    for _ in range(size):
        hashlib.md5(_BLOCK, usedforsecurity=False)


def work_and_tell(work: Work, size: int) -> tuple[int, float]:
    """Which worker it was, and the CPU time that it took."""
    began = time.process_time()
    work(size)
    return os.getpid(), time.process_time() - began


@dataclass(frozen=True)
class Pace:
    """What all of a side do per second: pieces of work, and CPU time for them."""

    rate: float
    cpu: float


@dataclass(frozen=True)
class Scaling:
    """Two over one: workers and plain processes, by the rate and by the CPU time that the work got."""

    workers: float
    processes: float
    workers_cpu: float
    processes_cpu: float
    rounds: dict[str, list[float]]  # the rates


def scaling(work: Work, size: int, rounds: int) -> Scaling:
    with Engine(cpu_workers=1) as one, Engine(cpu_workers=2) as two, burners() as plain:
        for engine in (one, two):
            _wait_for_workers(engine)
        sides: dict[str, Callable[[], Pace]] = {
            "one worker": lambda: engine_pace(one, work, size),
            "two workers": lambda: engine_pace(two, work, size),
            "one process": lambda: plain_pace(plain[:1], work, size),
            "two processes": lambda: plain_pace(plain, work, size),
        }
        found = alternate(rounds, sides, random.Random(rounds))
    rates = {side: [pace.rate for pace in paces] for side, paces in found.items()}
    cpu = {side: [pace.cpu for pace in paces] for side, paces in found.items()}
    return Scaling(
        paired(rates["two workers"], rates["one worker"]),
        paired(rates["two processes"], rates["one process"]),
        paired(cpu["two workers"], cpu["one worker"]),
        paired(cpu["two processes"], cpu["one process"]),
        rates,
    )


def _wait_for_workers(engine: Engine) -> None:
    """Until each has loaded this module."""
    heard: set[int] = set()
    while len(heard) < engine.worker_count:
        told = [engine.submit(work_and_tell, digests, 20) for _ in range(_AHEAD)]
        heard.update(future.result()[0] for future in told)


def engine_pace(engine: Engine, work: Work, size: int) -> Pace:
    """Each worker from its first end to its last within the time, as heard here, while more work waits."""
    ends: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    waiting: deque[Future[tuple[int, float]]] = deque()

    def note(future: Future[tuple[int, float]]) -> None:
        worker, cpu = future.result()
        ends[worker].append((time.perf_counter(), cpu))

    def submit() -> None:
        waiting.append(engine.submit(work_and_tell, work, size))
        waiting[-1].add_done_callback(note)

    for _ in range(_AHEAD):
        submit()
    until = time.perf_counter() + _WINDOW_SECONDS
    while time.perf_counter() < until:
        waiting.popleft().result()
        submit()
    counted = [list(own) for own in ends.values()]
    for future in waiting:
        future.result()
    return _sum([_pace(len(own) - 1, sum(cpu for _, cpu in own[1:]), own[-1][0] - own[0][0]) for own in counted])


def plain_pace(pipes: list[Connection], work: Work, size: int) -> Pace:
    """Each for itself until the time is over."""
    for pipe in pipes:
        pipe.send((work, size, _WINDOW_SECONDS))
    return _sum([pipe.recv() for pipe in pipes])


def _pace(count: int, cpu: float, seconds: float) -> Pace:
    return Pace(count / seconds, cpu / seconds) if seconds else Pace(0.0, 0.0)


def _sum(paces: list[Pace]) -> Pace:
    return Pace(sum(pace.rate for pace in paces), sum(pace.cpu for pace in paces))


@contextlib.contextmanager
def burners(count: int = 2) -> Iterator[list[Connection]]:
    """Plain processes that work for as long as they are told to; for no seconds, that is an echo."""
    pairs = [child.CONTEXT.Pipe() for _ in range(count)]
    processes = [child.CONTEXT.Process(target=_burner, args=(far,), daemon=True) for _, far in pairs]
    for process in processes:
        process.start()
    try:
        for near, _ in pairs:
            echoed(near)  # it is there
        yield [near for near, _ in pairs]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _burner(pipe: Connection) -> None:
    """Answers with its pace."""
    while True:
        work, size, seconds = pipe.recv()
        began, cpu, count = time.perf_counter(), 0.0, 0
        while (passed := time.perf_counter() - began) < seconds:
            cpu += work_and_tell(work, size)[1]
            count += 1
        pipe.send(_pace(count, cpu, passed))


def echoed(pipe: Connection) -> None:
    pipe.send((loop, 0, 0.0))
    pipe.recv()
