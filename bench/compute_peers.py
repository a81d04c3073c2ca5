"""No-op tasks one by one, in batches, and as round trips, against other pools in the same run.

Usage: compute_peers.py [rounds]. The pools take turns, and each figure is the median over the rounds: on a shared
machine only ratios of one run mean anything.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ulak.compute import Engine

TASKS, TRIPS, BATCH, WORKERS = 5000, 1000, 50_000, 2


def echo(value: int) -> int:
    return value


@dataclass
class Peer:
    name: str
    submit: Callable[[int], Any]
    get: Callable[[Any], Any]
    batch: Callable[[int], Any] | None = None
    figures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, figure: str, value: float) -> None:
        self.figures.setdefault(figure, []).append(value)

    def median(self, figure: str) -> float | None:
        return statistics.median(self.figures[figure]) if figure in self.figures else None


def peers(stack: contextlib.ExitStack) -> Iterator[Peer]:
    def result(future: Any) -> Any:
        return future.result()

    engine = stack.enter_context(Engine(cpu_workers=WORKERS))
    yield Peer("ulak", lambda n: engine.submit(echo, n), result, lambda n: list(engine.map(echo, range(n))))
    stdlib = stack.enter_context(ProcessPoolExecutor(WORKERS))
    yield Peer(
        "ProcessPoolExecutor",
        lambda n: stdlib.submit(echo, n),
        result,
        lambda n: list(stdlib.map(echo, range(n), chunksize=100)),
    )
    pool = stack.enter_context(multiprocessing.Pool(WORKERS))
    yield Peer("multiprocessing.Pool", lambda n: pool.apply_async(echo, (n,)), lambda r: r.get(), _pool_batch(pool))
    yield from _third_party(stack, result)


def _pool_batch(pool: Any) -> Callable[[int], Any]:
    return lambda n: pool.map(echo, range(n), chunksize=100)


def _third_party(stack: contextlib.ExitStack, result: Callable[[Any], Any]) -> Iterator[Peer]:
    if importlib.util.find_spec("pebble"):
        from pebble import ProcessPool

        pebble = stack.enter_context(ProcessPool(max_workers=WORKERS))
        yield Peer("pebble", lambda n: pebble.schedule(echo, args=(n,)), result)
    if importlib.util.find_spec("loky"):
        from loky import get_reusable_executor

        loky = get_reusable_executor(WORKERS, timeout=60)
        stack.callback(loky.shutdown, wait=True)
        yield Peer("loky", lambda n: loky.submit(echo, n), result)
    if importlib.util.find_spec("mpire"):
        from mpire import WorkerPool

        mpire = stack.enter_context(WorkerPool(WORKERS))
        mapper = stack.enter_context(WorkerPool(WORKERS))  # a pool that has run apply_async cannot run map
        yield Peer(
            "mpire",
            lambda n: mpire.apply_async(echo, (n,)),
            lambda r: r.get(),
            lambda n: mapper.map(echo, range(n), chunk_size=100),
        )
    if importlib.util.find_spec("joblib"):
        from joblib import Parallel, delayed

        def batch(count: int) -> Any:
            return Parallel(WORKERS)(delayed(echo)(n) for n in range(count))

        yield Peer("joblib", None, None, batch)  # type: ignore[arg-type]
    if importlib.util.find_spec("ray"):
        yield _ray(stack)


def _ray(stack: contextlib.ExitStack) -> Peer:
    import ray

    ray.init(num_cpus=WORKERS, log_to_driver=False, include_dashboard=False)
    stack.callback(ray.shutdown)
    remote = ray.remote(echo)
    return Peer("ray", remote.remote, ray.get, lambda n: ray.get([remote.remote(i) for i in range(n // 50)]))


def measure(peer: Peer) -> None:
    if peer.submit is not None:
        began = time.perf_counter()
        handles = [peer.submit(number) for number in range(TASKS)]
        for handle in handles:
            peer.get(handle)
        peer.note("one by one", (time.perf_counter() - began) / TASKS * 1e6)
        trips = []
        for number in range(TRIPS):
            began = time.perf_counter()
            peer.get(peer.submit(number))
            trips.append((time.perf_counter() - began) * 1e6)
        trips.sort()
        peer.note("trip p50", trips[TRIPS // 2])
        peer.note("trip p99", trips[TRIPS * 99 // 100])
    if peer.batch is not None:
        began = time.perf_counter()
        peer.batch(BATCH)
        peer.note("batch", (time.perf_counter() - began) / BATCH * 1e6)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with contextlib.ExitStack() as stack:
        all_peers = list(peers(stack))
        for turn in range(rounds + 1):
            for peer in all_peers:
                if turn == 0 and peer.submit is not None:
                    peer.get(peer.submit(0))  # warm
                elif turn:
                    measure(peer)
    report(all_peers)


def report(all_peers: list[Peer]) -> None:
    figures = ("one by one", "trip p50", "trip p99", "batch")
    ours = all_peers[0]
    print(f"{'µs per task':22}" + "".join(f"{figure:>22}" for figure in figures))
    for peer in all_peers:
        cells = []
        for figure in figures:
            value, own = peer.median(figure), ours.median(figure)
            cells.append("-" if value is None or own is None else f"{value:.1f} ({value / own:.2f}x)")
        print(f"{peer.name:22}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
