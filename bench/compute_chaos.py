"""Chaos: random SIGKILL and SIGSTOP of workers while tasks run. Usage: compute_chaos.py [tasks] [kills] [seed]."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ulak.compute import Engine, EngineOptions, TaskType

if TYPE_CHECKING:
    from bench.figure import Bench, Row


@dataclass
class Report:
    expected: int
    results: int
    wrong: int
    kills: int
    stops: int
    restarts: int
    seconds: float


def work(number: int) -> int:
    total = 0
    for value in range(number % 11 * 40):
        total += value
    return number


def chaos(tasks: int, kills: int, seed: int = 1) -> Report:
    """Each number must come back exactly once; a task may be retried without end, since its killers are ours."""
    chance, over, hits = random.Random(seed), threading.Event(), Counter()
    options = EngineOptions(cpu_workers=2, io_workers=2, io_threads=4, stopped_seconds=0.05, spare_workers=2)
    began = time.perf_counter()
    with Engine(options) as engine:
        killer = threading.Thread(target=_attack, args=(engine, over, kills, chance, hits))
        killer.start()
        seen = Counter(_run_all(engine, tasks, over, hits, kills))
        over.set()
        killer.join()
        restarts = engine.metrics()["process_pool"]["restarts"]
    wrong = sum(count != 1 for count in seen.values())
    return Report(tasks, len(seen), wrong, hits["kill"], hits["stop"], restarts, time.perf_counter() - began)


def _run_all(engine: Engine, tasks: int, over: threading.Event, hits: Counter, kills: int):
    cpu = engine.using(max_retries=10_000)
    io = engine.using(task_type=TaskType.IO_BOUND, max_retries=10_000)
    pace = max(1, tasks // max(1, kills))
    futures = []
    for number in range(tasks):
        futures.append((io if number % 4 == 0 else cpu).submit(work, number))
        if number % pace == 0:
            hits["due"] += 1  # the attacks are spread over the whole run
    for future in futures:
        yield future.result(300)


def _attack(engine: Engine, over: threading.Event, kills: int, chance: random.Random, hits: Counter) -> None:
    while not over.wait(0.002) and hits["kill"] + hits["stop"] < kills:
        if hits["kill"] + hits["stop"] >= hits["due"]:
            continue
        pids = [worker["pid"] for worker in engine.metrics()["workers"].values() if worker["pid"]]
        if not pids:
            continue
        kind = "stop" if chance.random() < 0.25 else "kill"
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(pids), signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
            hits[kind] += 1


def rows(bench: Bench) -> Iterator[Row]:
    from bench import child  # a test uses this module, and needs none of the bench's own
    from bench.figure import Row

    found = child.measure(chaos, bench.scaled(20_000, 3_000), bench.scaled(100, 20), timeout_seconds=240)
    lost = found.expected - found.results + found.wrong
    yield Row(
        f"compute: lost or doubled of {found.expected:,} tasks, workers killed and stopped",
        "tasks",
        lost,
        target="0",
        met=lost == 0,
        detail=asdict(found),
    )


def main() -> None:
    tasks, kills, seed = (int(word) for word in (*sys.argv[1:], *("100000", "500", "1")[len(sys.argv) - 1 :]))
    report = chaos(tasks, kills, seed)
    print(report)
    if report.wrong or report.results != report.expected:
        sys.exit("tasks were lost or ran twice into the results")


if __name__ == "__main__":
    main()
