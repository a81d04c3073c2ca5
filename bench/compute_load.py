"""CPU scaling on two workers, IO latency beside saturated CPU, and the time from a worker's death to the rerun.

*Scaling* is two workers' rate over one worker's. No engine can give more than the machine has at that moment: cores may
be shared with others, or be two threads of one core. So every round also measures what the machine gives: two plain
processes that burn the same loops side by side, each counting for itself, against one alone. Workers are counted in the
same way: what one does while the other has nothing left is not in the figure. The target stays on the engine's own
figure; its ratio to the machine's is shown beside it. All take turns in fifteen short rounds, because a neighbour that
has one of the cores for half a second spoils a round; a figure is the median of the rounds' ratios.

*IO beside CPU*: the caller, the dispatcher and the IO worker share two cores with two CPU workers that never stop.
What the machine's scheduler does to anybody in that place is measured too: a plain process that echoes over a pipe
beside two plain processes that burn. It is shown, and changes nothing about the target.

*Death to rerun* is taken by the task itself: from just before it ends its worker to the first line of its second run.
With two workers, deaths come one right after another and the rerun goes to the other worker. With one worker the spare
must take over, so this is a figure of its own; there deaths come a second and a half apart. When they come faster than
a spare can load the task's modules (here about a quarter of a second of imports), the rerun waits for that.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import statistics
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from bench import child, report
from bench.figure import Bench, Row, alternate, bounded, paired
from ulak.compute import Engine, TaskType

_WINDOW_SECONDS = 0.6
_AHEAD = 8  # tasks that wait or run: a worker never looks for work in vain


def burn(loops: int) -> float:
    total = 0.0
    for value in range(loops):
        total += value * value
    return total


def burn_and_tell(loops: int) -> int:
    """Which worker it was."""
    burn(loops)
    return os.getpid()


def now() -> float:
    return time.monotonic()


def die_once(marker: str) -> float:
    """The first run notes when it ends its worker; the second says when it began."""
    note = pathlib.Path(marker)
    if not note.exists():
        note.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    return time.monotonic() - float(note.read_text())


def scaling(loops: int, rounds: int) -> tuple[float, float]:
    """Two workers' rate over one worker's, and two plain processes' over one's; all take turns."""
    with Engine(cpu_workers=1) as one, Engine(cpu_workers=2) as two, burners() as plain:
        sides = {
            "one worker": lambda: engine_rate(one, loops),
            "two workers": lambda: engine_rate(two, loops),
            "one process": lambda: plain_rate(plain[:1], loops),
            "two processes": lambda: plain_rate(plain, loops),
        }
        for engine in (one, two):
            engine_rate(engine, 1000)  # its workers are there
        found = alternate(rounds, sides)
    return (
        paired(found["two workers"], found["one worker"]),
        paired(found["two processes"], found["one process"]),
    )


def timed(act: Callable[..., None], *arguments: Any) -> float:
    began = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - began


def engine_rate(engine: Engine, loops: int) -> float:
    """Burns per second of all workers, each from its first end to its last within the time, while others wait."""
    ends: defaultdict[int, list[float]] = defaultdict(list)
    waiting: deque[Future[int]] = deque()

    def submit() -> None:
        waiting.append(engine.submit(burn_and_tell, loops))
        waiting[-1].add_done_callback(lambda future: ends[future.result()].append(time.perf_counter()))

    for _ in range(_AHEAD):
        submit()
    until = time.perf_counter() + _WINDOW_SECONDS
    while time.perf_counter() < until:
        waiting.popleft().result()
        submit()
    rate = sum((len(own) - 1) / (own[-1] - own[0]) for own in ends.values())
    for future in waiting:
        future.result()
    return rate


def plain_rate(pipes: list[Connection], loops: int) -> float:
    """Burns per second of all together, each for itself until the time is over."""
    for pipe in pipes:
        pipe.send((loops, _WINDOW_SECONDS))
    return sum(pipe.recv() for pipe in pipes)


@contextlib.contextmanager
def burners(count: int = 2) -> Iterator[list[Connection]]:
    """Plain processes that burn for as long as they are told to; for no seconds, that is an echo."""
    pairs = [child.CONTEXT.Pipe() for _ in range(count)]
    processes = [child.CONTEXT.Process(target=_burner, args=(far,), daemon=True) for _, far in pairs]
    for process in processes:
        process.start()
    try:
        for near, _ in pairs:
            _echoed(near)  # it is there
        yield [near for near, _ in pairs]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _burner(pipe: Connection) -> None:
    """Answers with its burns per second."""
    while True:
        loops, seconds = pipe.recv()
        began, burns = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            burn(loops)
            burns += 1
        pipe.send(burns / passed)


def _echoed(pipe: Connection) -> None:
    pipe.send((0, 0.0))
    pipe.recv()


def io_beside_cpu(trips: int = 500) -> tuple[float, float]:
    """Milliseconds, p50 and p99, of an IO call and back while every CPU worker is busy."""
    with Engine(cpu_workers=2) as engine:
        io = engine.using(task_type=TaskType.IO_BOUND)
        io.submit(now).result()
        load = [engine.submit(burn, 3_000_000) for _ in range(200)]
        taken = [timed(lambda: io.submit(now).result()) for _ in range(trips)]
        assert not all(future.done() for future in load), "the CPU was not saturated all the time"
        engine.close(0)
    return percentiles(taken)


def echo_beside_burning(trips: int = 500) -> tuple[float, float]:
    """The same of a plain process's echo, beside two plain processes that burn."""
    with burners(3) as (first, second, echo):
        for pipe in (first, second):
            pipe.send((400_000, 60.0))
        taken = [timed(_echoed, echo) for _ in range(trips)]
        assert not first.poll(), "the CPU was not saturated all the time"
        assert not second.poll(), "the CPU was not saturated all the time"
    return percentiles(taken)


def percentiles(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2] * 1e3, ordered[len(ordered) * 99 // 100] * 1e3


def deaths(count: int, workers: int, apart_seconds: float = 0.0) -> tuple[float, float]:
    """Milliseconds from a death to the rerun, the median and the longest."""
    taken = []
    with tempfile.TemporaryDirectory() as directory, Engine(cpu_workers=workers) as engine:
        engine.submit(now).result()
        for number in range(count):
            time.sleep(apart_seconds)
            taken.append(engine.submit(die_once, f"{directory}/{number}").result() * 1e3)
    return statistics.median(taken), max(taken)


def rows(bench: Bench) -> Iterator[Row]:
    ratio, machine = child.measure(scaling, bench.scaled(400_000, 200_000), bench.scaled(15, 1))
    yield Row(
        "compute: CPU scaling on 2 workers",
        "×",
        ratio,
        against="plain processes",
        other=machine,
        ratio=ratio / machine,
        target="≥ 1.9 ×",
        met=ratio >= 1.9,
    )
    p50, p99 = child.measure(io_beside_cpu, bench.scaled(500, 150))
    plain50, plain99 = child.measure(echo_beside_burning, bench.scaled(500, 150))
    yield bounded("compute: IO call beside saturated CPU, p99", "ms", p99, 5, p50=p50)
    yield bounded("compute: a plain process's echo beside saturated CPU, p99", "ms", plain99, p50=plain50)
    median, longest = child.measure(deaths, bench.scaled(30, 10), 2)
    yield bounded("compute: a worker's death to its task's rerun, longest", "ms", longest, 100, median=median)
    median, longest = child.measure(deaths, bench.scaled(15, 3), 1, 1.5)
    yield bounded("compute: the same with one worker and its spare, longest", "ms", longest, median=median)


if __name__ == "__main__":
    from bench.compute_load import rows as importable  # workers find functions by their module

    report.alone("compute_load", importable)
