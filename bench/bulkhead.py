"""What one dead destination with 10,000 jobs waiting does to the others: their p95 with it and without it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, paired
from bench.load import percentile
from bench.place import in_file

WAITING = 10_000
MAX_CHANGE = 0.10


def rows(bench: Bench) -> Iterator[Row]:
    samples = alternate(
        bench.rounds,
        {
            "alone": partial(_p95, 0, bench.scaled(4, 2)),
            "beside": partial(_p95, WAITING, bench.scaled(4, 2)),
        },
    )
    ratio = paired(samples["beside"], samples["alone"])
    yield Row(
        f"SQLite: others' p95 beside a dead destination, {WAITING:,} waiting",
        "ms",
        median(samples["beside"]),
        against="without it",
        other=median(samples["alone"]),
        ratio=ratio,
        target=f"< {1 + MAX_CHANGE:g} ×",
        met=ratio < 1 + MAX_CHANGE,
        detail={"samples": samples},
    )


def _p95(dead: int, seconds: int) -> float:
    return percentile(in_file(ulak_side.others_latency, dead, seconds), 95)


if __name__ == "__main__":
    report.alone("bulkhead", rows)
