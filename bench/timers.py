"""How late timers start their handler, with 100,000 of them armed and 1,667 due in every second."""

from __future__ import annotations

from collections.abc import Iterator

from bench import report, ulak_side
from bench.figure import Bench, Row, bounded
from bench.load import percentile
from bench.place import in_file

DUE_PER_SECOND = 1_667
LIMIT_MS = 10


def rows(bench: Bench) -> Iterator[Row]:
    armed = bench.scaled(100_000, 20_000)
    late_ms = in_file(ulak_side.timers, armed, armed / DUE_PER_SECOND, bench.scaled(15, 3))
    name = f"SQLite: timer lateness, {armed:,} armed"
    yield bounded(f"{name}, p50", "ms", percentile(late_ms, 50), samples=len(late_ms))
    yield bounded(f"{name}, p99", "ms", percentile(late_ms, 99), LIMIT_MS, samples=len(late_ms), max=max(late_ms))


if __name__ == "__main__":
    report.alone("timers", rows)
