"""What one dead destination with 10,000 jobs waiting does to the others: their p95 with it and without it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate
from bench.load import percentile
from bench.place import in_file

WAITING = 10_000
MOST_CHANGE = 0.10


def rows(bench: Bench) -> Iterator[Row]:
    samples = alternate(
        bench.rounds,
        {
            "alone": partial(_p95, 0, bench.scaled(6, 2)),
            "beside": partial(_p95, WAITING, bench.scaled(6, 2)),
        },
    )
    alone, beside = median(samples["alone"]), median(samples["beside"])
    yield Row(
        f"SQLite: others' p95 beside a dead destination, {WAITING:,} waiting",
        "ms",
        beside,
        against="without it",
        other=alone,
        ratio=beside / alone,
        target=f"< {1 + MOST_CHANGE:g} ×",
        met=beside < alone * (1 + MOST_CHANGE),
        detail={"samples": samples},
    )


def _p95(dead: int, seconds: int) -> float:
    return percentile(in_file(ulak_side.others_latency, dead, seconds), 95)


if __name__ == "__main__":
    report.alone("bulkhead", rows)
