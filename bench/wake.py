"""From the call of enqueue to the start of the handler, durable commit included."""

from __future__ import annotations

from collections.abc import Iterator

from bench import report, ulak_side
from bench.figure import Bench, Row, bounded
from bench.load import percentile
from bench.place import in_database, in_file


def rows(bench: Bench) -> Iterator[Row]:
    yield from _rows("SQLite: wake in process", 5, in_file(ulak_side.wake, bench.scaled(2_000, 200)))
    yield from _rows(
        "PostgreSQL: wake between processes, under load",
        30,
        in_database(bench.server, ulak_side.wake_between_processes, bench.scaled(12, 2)),
    )


def _rows(name: str, limit_ms: float, took_ms: list[float]) -> Iterator[Row]:
    yield bounded(f"{name}, p50", "ms", percentile(took_ms, 50), samples=len(took_ms))
    yield bounded(f"{name}, p99", "ms", percentile(took_ms, 99), limit_ms, samples=len(took_ms), max=max(took_ms))


if __name__ == "__main__":
    report.alone("wake", rows)
