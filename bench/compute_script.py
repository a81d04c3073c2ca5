"""A cached script task against a function task, `runpy` in process, and a fresh interpreter."""

from __future__ import annotations

import pathlib
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from bench import child, report
from bench.figure import Bench, Row, bounded
from ulak.compute import Engine, Task, TaskType

TASKS = 2000
LIMIT_MICROS = 20
SCRIPT = "def run(params):\n    return params['value']\n"


def echo(params: dict[str, int]) -> int:
    return params["value"]


def per_task(begin: float, count: int) -> float:
    return (time.perf_counter() - begin) / count * 1e6


def functions(engine: Engine) -> float:
    began = time.perf_counter()
    for future in [engine.submit(echo, {"value": n}) for n in range(TASKS)]:
        future.result()
    return per_task(began, TASKS)


def scripts(engine: Engine, name: str) -> float:
    began = time.perf_counter()
    tasks = [Task.create(name, {"value": n}, TaskType.CPU_BOUND) for n in range(TASKS)]
    for task_id in engine.submit_tasks(tasks):
        engine.get_result(task_id)
    return per_task(began, TASKS)


def in_worker(path: str) -> dict[str, float]:
    """The worker's own cost, without the way there and back: the script's against the same function called there."""
    from ulak.compute.script import Scripts

    scripts = Scripts("cpu-0", str(pathlib.Path(path).parent), 65536, alone=True)
    import pickle

    params = pickle.dumps({"value": 1})
    scripts.run(path, params, "id", 1)
    began = time.perf_counter()
    for _ in range(TASKS):
        scripts.run(path, params, "id", 1)
    script = per_task(began, TASKS)
    began = time.perf_counter()
    for _ in range(TASKS):
        pickle.dumps(echo(pickle.loads(params)))
    return {"script": script, "function": per_task(began, TASKS)}


def measured(rounds: int) -> dict[str, float]:
    """Microseconds per task: the medians of all ways to run the same two lines."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "echo.py")
        path.write_text(SCRIPT)
        with Engine(cpu_workers=2, script_root=directory) as engine:
            functions(engine), scripts(engine, "echo.py")
            pairs = [(functions(engine), scripts(engine, "echo.py")) for _ in range(rounds)]
            inner = [engine.submit(in_worker, str(path)).result() for _ in range(rounds)]
        began = time.perf_counter()
        for _ in range(200):
            runpy.run_path(str(path))["run"]({"value": 1})
        in_process = per_task(began, 200)
        began = time.perf_counter()
        for _ in range(10):
            subprocess.run([sys.executable, str(path)], check=True)
        fresh = per_task(began, 10)
    function, script = (statistics.median(column) for column in zip(*pairs, strict=True))
    inside = {name: statistics.median(row[name] for row in inner) for name in ("function", "script")}
    return {
        "function": function,
        "script": script,
        "in worker": inside["script"] - inside["function"],
        "runpy": in_process,
        "python": fresh,
    }


def rows(bench: Bench) -> Iterator[Row]:
    found = child.measure(measured, bench.scaled(3, 1))
    difference = found["script"] - found["function"]
    yield bounded(
        "compute: cached script over a function, with Task and Result", "µs", difference, LIMIT_MICROS, **found
    )
    yield bounded("compute: the worker's part of that", "µs", found["in worker"])
    for name in ("runpy", "python"):
        yield Row(
            "compute: script task",
            "µs",
            found["script"],
            against={"runpy": "runpy.run_path", "python": "python script"}[name],
            other=found[name],
            ratio=found["script"] / found[name],
        )


if __name__ == "__main__":
    from bench.compute_script import rows as importable  # workers find functions by their module

    report.alone("compute_script", importable)
