"""CPU scaling on two workers, IO latency beside saturated CPU, and the time from a worker's death to the rerun.

*Scaling* is two workers' rate over one worker's. No engine can give more than the machine has at that moment: cores may
be shared with others, or be two threads of one core. So every round also measures what the machine gives: two plain
processes that do the same side by side, each counting for itself, against one alone. Workers are counted in the same
way: what one does while the other has nothing left is not in the figure. All take turns, in another order each round,
because a neighbour that has one of the cores for half a second spoils a round; a figure is the median of the rounds'
ratios. The target is on work that a neighbour on a core's other hardware thread hardly slows (see `bench.scaling`); the
same of a Python loop is shown beside it. The detail has both by the CPU time that the tasks got.

*IO beside CPU*: the caller, the dispatcher and the IO worker share two cores with two CPU workers that never stop.
What the machine's scheduler does to anybody in that place is measured too: a plain process that echoes over a pipe
beside two plain processes that burn. It is shown, and changes nothing about the target. Both take turns; p99 is that of
each round, and of those the median.

*Death to rerun* is taken by the task itself: from just before it ends its worker to the first line of its second run.
With two workers, deaths come one right after another and the rerun goes to the other worker. With one worker the spare
must take over, so this is a figure of its own; there deaths come a second and a half apart. When they come faster than
a spare can load the task's modules (here about a quarter of a second of imports), the rerun waits for that.
"""

from __future__ import annotations

import os
import pathlib
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench import child, report
from bench.figure import Bench, Row, alternate, bounded, tails
from bench.scaling import Scaling, burners, digests, echoed, loop, scaling
from ulak.compute import Engine, TaskType


def now() -> float:
    return time.monotonic()


def die_once(marker: str) -> float:
    """The first run notes when it ends its worker; the second says when it began."""
    note = pathlib.Path(marker)
    if not note.exists():
        note.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    return time.monotonic() - float(note.read_text())


def timed_ms(act: Callable[..., None], *arguments: Any) -> float:
    began = time.perf_counter()
    act(*arguments)
    return (time.perf_counter() - began) * 1e3


def io_beside_cpu(trips: int) -> list[float]:
    """Milliseconds of an IO call and back while every CPU worker is busy."""
    with Engine(cpu_workers=2) as engine:
        io = engine.using(task_type=TaskType.IO_BOUND)
        io.submit(now).result()
        load = [engine.submit(loop, 3_000_000) for _ in range(200)]
        taken = [timed_ms(lambda: io.submit(now).result()) for _ in range(trips)]
        assert not all(future.done() for future in load), "the CPU was not saturated all the time"
        engine.close(0)
    return taken


def echo_beside_burning(trips: int) -> list[float]:
    """The same of a plain process's echo, beside two plain processes that burn."""
    with burners(3) as (first, second, echo):
        for pipe in (first, second):
            pipe.send((loop, 400_000, 60.0))
        taken = [timed_ms(echoed, echo) for _ in range(trips)]
        assert not first.poll(), "the CPU was not saturated all the time"
        assert not second.poll(), "the CPU was not saturated all the time"
    return taken


def deaths(count: int, workers: int, apart_seconds: float = 0.0) -> tuple[float, float]:
    """Milliseconds from a death to the rerun, the median and the longest."""
    taken = []
    with tempfile.TemporaryDirectory() as directory, Engine(cpu_workers=workers) as engine:
        engine.submit(now).result()
        for number in range(count):
            time.sleep(apart_seconds)
            taken.append(engine.submit(die_once, f"{directory}/{number}").result() * 1e3)
    return statistics.median(taken), max(taken)


def _scaling_row(figure: str, found: Scaling, at_least: float | None = None) -> Row:
    return Row(
        figure,
        "×",
        found.workers,
        against="plain processes",
        other=found.processes,
        ratio=found.workers / found.processes,
        target="" if at_least is None else f"≥ {at_least:g} ×",
        met=None if at_least is None else found.workers >= at_least,
        detail={"cpu": found.workers_cpu, "plain_cpu": found.processes_cpu, "rounds": found.rounds},
    )


def rows(bench: Bench) -> Iterator[Row]:
    found = child.measure(scaling, digests, bench.scaled(400, 200), bench.scaled(21, 1))
    yield _scaling_row("compute: CPU scaling on 2 workers", found, 1.9)
    found = child.measure(scaling, loop, bench.scaled(400_000, 200_000), bench.scaled(21, 1))
    yield _scaling_row("compute: the same of a Python loop", found)
    trips = bench.scaled(500, 150)
    took = alternate(
        bench.rounds,
        {
            "call": partial(child.measure, io_beside_cpu, trips),
            "echo": partial(child.measure, echo_beside_burning, trips),
        },
    )
    yield from tails("compute: IO call beside saturated CPU", took["call"], 5)
    yield from tails("compute: a plain process's echo beside saturated CPU", took["echo"])
    median, longest = child.measure(deaths, bench.scaled(30, 10), 2)
    yield bounded("compute: a worker's death to its task's rerun, longest", "ms", longest, 100, median=median)
    median, longest = child.measure(deaths, bench.scaled(15, 3), 1, 1.5)
    yield bounded("compute: the same with one worker and its spare, longest", "ms", longest, median=median)


if __name__ == "__main__":
    from bench.compute_load import rows as importable  # workers find functions by their module

    report.alone("compute_load", importable)
