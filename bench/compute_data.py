"""Large numpy arrays as arguments and results, beside other pools, and what the parent needs for them.

Each pool runs in a process of its own, so that the peak memory is its own; the pools take turns, round after round. A
task reads every page of an argument, and the parent every page of a result: memory that nobody touched costs nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any

import numpy as np

from bench import child, report
from bench.figure import Bench, Row, compared
from ulak.compute import Engine

WORKERS, QUEUED, REPEATS = 2, 100, 3
SMALL, LARGE = 1_000_000 // 8, 100_000_000 // 8  # float64 in 1 MB and in 100 MB
_PAGE = 4096 // 8

Submit = Callable[..., Any]
Opened = tuple[Submit, Callable[[Any], Any]]


def echo(array: Any) -> Any:
    return array


def touch(array: Any) -> float:
    return float(array[::_PAGE].sum())


def make(length: int) -> Any:
    return np.ones(length)


def ulak(stack: contextlib.ExitStack) -> Opened:
    """At the niceness of the other pools: on a busy machine the default would yield to whatever else runs there."""
    return stack.enter_context(Engine(cpu_workers=WORKERS, cpu_nice=0)).submit, lambda future: future.result()


def executor(stack: contextlib.ExitStack) -> Opened:
    return stack.enter_context(ProcessPoolExecutor(WORKERS)).submit, lambda future: future.result()


def pool(stack: contextlib.ExitStack) -> Opened:
    opened = stack.enter_context(multiprocessing.Pool(WORKERS))
    return lambda function, *args: opened.apply_async(function, args), lambda handle: handle.get()


def pebble(stack: contextlib.ExitStack) -> Opened:
    from pebble import ProcessPool

    opened = stack.enter_context(ProcessPool(max_workers=WORKERS))
    return lambda function, *args: opened.schedule(function, args=args), lambda future: future.result()


def loky(stack: contextlib.ExitStack) -> Opened:
    try:
        from loky import get_reusable_executor
    except ImportError:
        from joblib.externals.loky import get_reusable_executor  # the same, as joblib carries it
    opened = get_reusable_executor(WORKERS, timeout=60)
    stack.callback(opened.shutdown, wait=True)
    return opened.submit, lambda future: future.result()


POOLS: dict[str, Callable[[contextlib.ExitStack], Opened]] = {
    "Ulak": ulak,
    "ProcessPoolExecutor": executor,
    "multiprocessing.Pool": pool,
    **({"pebble": pebble} if importlib.util.find_spec("pebble") else {}),
    **({"loky": loky} if importlib.util.find_spec("loky") or importlib.util.find_spec("joblib") else {}),
}


def measured(name: str) -> dict[str, float]:
    """Megabytes per second by figure, the best of a few, and the parent's peak in MB."""
    with contextlib.ExitStack() as stack:
        submit, get = POOLS[name](stack)
        for handle in [submit(touch, make(SMALL)) for _ in range(4 * WORKERS)]:
            get(handle)  # warm
        small, large = [make(SMALL) for _ in range(QUEUED)], make(LARGE)

        def queued() -> float:
            handles = [submit(echo, array) for array in small]
            return sum(touch(get(handle)) for handle in handles)

        rates = {
            "1 MB in and out, 100 queued": 2 * QUEUED / _best(queued),
            "100 MB argument": 100 / _best(lambda: get(submit(touch, large))),
            "100 MB result": 100 / _best(lambda: touch(get(submit(make, LARGE)))),
        }
        return {**rates, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _best(run: Callable[[], Any]) -> float:
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return min(took)


def rows(bench: Bench) -> Iterator[Row]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in POOLS}
    for _ in range(bench.scaled(3, 1)):
        for name in POOLS:
            found[name].append(child.measure(measured, name))
    for figure in ("1 MB in and out, 100 queued", "100 MB argument", "100 MB result"):
        samples = {name: [values[figure] for values in rounds] for name, rounds in found.items()}
        yield from compared(f"compute: arrays, {figure}", "MB/s", samples, dict.fromkeys(POOLS, 1.0))
    yield from _peaks(found)


def _peaks(found: dict[str, list[dict[str, float]]]) -> Iterator[Row]:
    peaks = {name: median(values["peak"] for values in rounds) for name, rounds in found.items()}
    for name, other in peaks.items():
        if name != "Ulak":
            ratio = peaks["Ulak"] / other
            yield Row("compute: arrays, parent's peak", "MB", peaks["Ulak"], name, other, ratio, "≤ 1 ×", ratio <= 1)


if __name__ == "__main__":
    from bench.compute_data import rows as importable  # workers find functions by their module

    report.alone("compute_data", importable)
