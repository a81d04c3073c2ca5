"""CPU scaling on two workers, IO latency beside saturated CPU, and the time from a worker's death to the rerun."""

from __future__ import annotations

import os
import pathlib
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator

from bench import child, report
from bench.figure import Bench, Row, bounded
from ulak.compute import Engine, TaskType


def burn(loops: int) -> float:
    total = 0.0
    for value in range(loops):
        total += value * value
    return total


def now() -> float:
    return time.monotonic()


def die_once(marker: str) -> float:
    """The first run notes when it ends its worker; the second says when it began."""
    note = pathlib.Path(marker)
    if not note.exists():
        note.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    return time.monotonic() - float(note.read_text())


def scaling(tasks: int = 24, loops: int = 400_000) -> float:
    """One worker's time over two workers', in turns."""
    times: dict[int, list[float]] = {1: [], 2: []}
    with Engine(cpu_workers=1) as one, Engine(cpu_workers=2) as two:
        for engine in (one, two):
            [future.result() for future in [engine.submit(burn, 1000) for _ in range(8)]]
        for _ in range(3):
            for workers, engine in ((1, one), (2, two)):
                began = time.perf_counter()
                [future.result() for future in [engine.submit(burn, loops) for _ in range(tasks)]]
                times[workers].append(time.perf_counter() - began)
    return statistics.median(times[1]) / statistics.median(times[2])


def io_beside_cpu(trips: int = 500) -> tuple[float, float]:
    """Milliseconds, p50 and p99, of an IO call and back while every CPU worker is busy."""
    taken = []
    with Engine(cpu_workers=2) as engine:
        io = engine.using(task_type=TaskType.IO_BOUND)
        io.submit(now).result()
        load = [engine.submit(burn, 3_000_000) for _ in range(200)]
        while len(taken) < trips:
            began = time.perf_counter()
            io.submit(now).result()
            taken.append((time.perf_counter() - began) * 1e3)
        assert not all(future.done() for future in load), "the CPU was not saturated all the time"
        engine.close(0)
    taken.sort()
    return taken[trips // 2], taken[trips * 99 // 100]


def death_to_rerun(directory: str, deaths: int = 30) -> tuple[float, float]:
    with Engine(cpu_workers=2) as engine:
        engine.submit(now).result()
        taken = sorted(engine.submit(die_once, f"{directory}/{number}").result() * 1e3 for number in range(deaths))
    return taken[deaths // 2], taken[-1]


def deaths(count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        return death_to_rerun(directory, count)


def rows(bench: Bench) -> Iterator[Row]:
    ratio = child.measure(scaling, bench.scaled(24, 8), bench.scaled(400_000, 200_000))
    yield Row("compute: CPU scaling on 2 workers", "×", ratio, target="≥ 1.9 ×", met=ratio >= 1.9)
    p50, p99 = child.measure(io_beside_cpu, bench.scaled(500, 150))
    yield bounded("compute: IO call beside saturated CPU, p99", "ms", p99, 5, p50=p50)
    median, longest = child.measure(deaths, bench.scaled(30, 10))
    yield bounded("compute: a worker's death to its task's rerun, longest", "ms", longest, 100, median=median)


if __name__ == "__main__":
    from bench.compute_load import rows as importable  # workers find functions by their module

    report.alone("compute_load", importable)
