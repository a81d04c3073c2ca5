"""Memory of the whole process with 100,000 jobs waiting and a worker running."""

from __future__ import annotations

from collections.abc import Iterator

from bench import report, ulak_side
from bench.figure import Bench, Row, bounded
from bench.place import in_file

LIMIT_MB = 300


def rows(bench: Bench) -> Iterator[Row]:
    waiting = bench.scaled(100_000, 30_000)
    usage = in_file(ulak_side.memory, waiting)
    yield bounded(f"SQLite: peak memory, {waiting:,} waiting", "MB", usage["peak"], LIMIT_MB, **usage)


if __name__ == "__main__":
    report.alone("memory", rows)
