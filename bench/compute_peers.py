"""No-op tasks one by one, in batches, and as round trips, against other pools in the same run.

The pools take turns, and each figure is the median over the rounds: on a shared
machine only ratios of one run mean anything.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bench import child, report
from bench.figure import Bench, Row, compared
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


def peers(stack: contextlib.ExitStack, with_ray: bool = True) -> Iterator[Peer]:
    def result(future: Any) -> Any:
        return future.result()

    engine = stack.enter_context(Engine(cpu_workers=WORKERS, cpu_nice=0))  # the other pools' niceness
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
    yield from _third_party(stack, result, with_ray)


def _pool_batch(pool: Any) -> Callable[[int], Any]:
    return lambda n: pool.map(echo, range(n))  # in chunks of its own choice, which are its fastest


def _third_party(stack: contextlib.ExitStack, result: Callable[[Any], Any], with_ray: bool) -> Iterator[Peer]:
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
    if with_ray and importlib.util.find_spec("ray"):
        yield _ray(stack)


def _ray(stack: contextlib.ExitStack) -> Peer:
    import ray

    ray.init(num_cpus=WORKERS, log_to_driver=False, include_dashboard=False)
    stack.callback(ray.shutdown)
    remote = ray.remote(echo)
    return Peer("ray", remote.remote, ray.get)  # it has no batches


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


Found = list[tuple[str, dict[str, list[float]]]]  # pool, then microseconds by figure


def measured(rounds: int, with_ray: bool) -> Found:
    """Microseconds by figure, round after round, of each pool; ours is the first."""
    with contextlib.ExitStack() as stack:
        all_peers = list(peers(stack, with_ray))
        for turn in range(rounds + 1):
            for peer in all_peers:
                if turn == 0 and peer.submit is not None:
                    peer.get(peer.submit(0))  # warm
                elif turn:
                    measure(peer)
        return [(peer.name, peer.figures) for peer in all_peers]


def rows(bench: Bench) -> Iterator[Row]:
    found = child.measure(measured, bench.scaled(3, 1), not bench.quick, timeout_seconds=240)
    yield from _rates("compute: no-op tasks, one by one", "one by one", found, {"ProcessPoolExecutor": 2.0}, 1.0)
    yield from _trips(found)
    promised = {"joblib": 1.0, "multiprocessing.Pool": 1.0}
    yield from _rates("compute: no-op tasks, in batches", "batch", found, promised, None)


def _rates(figure: str, key: str, found: Found, promised: dict[str, float], usual: float | None) -> Iterator[Row]:
    samples = {
        "Ulak" if name == "ulak" else name: [1e6 / value for value in figures[key]]
        for name, figures in found
        if key in figures
    }
    at_least = promised if usual is None else dict.fromkeys(samples, usual) | promised
    yield from compared(figure, "/s", samples, at_least)


def _trips(found: Found) -> Iterator[Row]:
    ours = statistics.median(found[0][1]["trip p50"])
    for name, figures in found[1:]:
        if "trip p50" in figures:
            other = statistics.median(figures["trip p50"])
            yield Row(
                "compute: round trip, p50",
                "µs",
                ours,
                against=name,
                other=other,
                ratio=ours / other,
                target="< 1 ×",
                met=ours < other,
                detail={"samples": {"Ulak": found[0][1]["trip p50"], name: figures["trip p50"]}},
            )


if __name__ == "__main__":
    from bench.compute_peers import rows as importable  # workers find functions by their module

    report.alone("compute_peers", importable)
