"""A cached script against a function, `runpy` in process, and a fresh interpreter.

What the script costs over a function is measured on one path: both are tasks, with an id, options, retries and a kept
Result, submitted and asked for by the same calls; only what the worker is told to run differs. The engine has no public
task of a function, so the bench puts a call into a registered task's work. Before, the script's side had a Task and a
Result and the function's side a bare future, and the difference was mostly the price of those; that difference is still
shown, as a figure of its own. Sides take turns, each figure is the median of its rounds (nine; before, three).

The script's own cost in the worker may be larger than the difference: the workers run beside the parent, and it is the
slower of the two that counts.
"""

from __future__ import annotations

import pathlib
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from bench import child, report
from bench.figure import Bench, Row, alternate, bounded
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
    """Tasks that run the script."""
    return tasks(engine, name, engine.submit_task)


def function_tasks(engine: Engine, name: str) -> float:
    """The same tasks, on the same way in and out; what runs is the function."""

    def submit(task: Task) -> str:
        work = engine._tasks.register(task)
        work.body = engine._calls.one(echo, (task.params,), {})
        engine._door.enter(work, None)
        return task.id

    return tasks(engine, name, submit)


def tasks(engine: Engine, name: str, submit: Callable[[Task], str]) -> float:
    began = time.perf_counter()
    made = [Task.create(name, {"value": n}, TaskType.CPU_BOUND) for n in range(TASKS)]
    for task_id in [submit(task) for task in made]:
        engine.get_result(task_id)
    return per_task(began, TASKS)


def in_worker(path: str) -> dict[str, float]:
    """The worker's own cost, without the way there and back: the script's against the same function called there.

    The file is looked at for every run, as for tasks that come one by one; tasks that come together share a look.
    """
    from ulak.compute.worker.script import Scripts

    scripts = Scripts("cpu-0", str(pathlib.Path(path).parent), 65536, alone=True)
    import pickle

    params = pickle.dumps({"value": 1})
    scripts.run(path, params, "id", 1)
    began = time.perf_counter()
    for _ in range(TASKS):
        scripts.look_again()
        scripts.run(path, params, "id", 1)
    script = per_task(began, TASKS)
    scripts.give_back()
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
            sides = {
                "function": lambda: function_tasks(engine, path.name),
                "script": lambda: scripts(engine, path.name),
                "future": lambda: functions(engine),
            }
            alternate(1, sides)
            samples = alternate(rounds, sides)
            inner = [engine.submit(in_worker, str(path)).result() for _ in range(3)]
        began = time.perf_counter()
        for _ in range(200):
            runpy.run_path(str(path))["run"]({"value": 1})
        in_process = per_task(began, 200)
        began = time.perf_counter()
        for _ in range(10):
            subprocess.run([sys.executable, str(path)], check=True)
        fresh = per_task(began, 10)
    found = {name: statistics.median(values) for name, values in samples.items()}
    inside = {name: statistics.median(row[name] for row in inner) for name in ("function", "script")}
    return {**found, "in worker": inside["script"] - inside["function"], "runpy": in_process, "python": fresh}


def rows(bench: Bench) -> Iterator[Row]:
    found = child.measure(measured, bench.scaled(9, 1))
    difference = found["script"] - found["function"]
    yield bounded("compute: cached script over a function, both as tasks", "µs", difference, LIMIT_MICROS, **found)
    yield bounded("compute: the script's own cost in the worker", "µs", found["in worker"])
    yield bounded("compute: script task over a function's bare future", "µs", found["script"] - found["future"])
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
