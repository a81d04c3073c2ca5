"""How long a claim of 100 takes from two million jobs: half ready, half not to be walked over.

The promise is about the claim itself, which must not grow with the table. Until the worker has the jobs it also takes a
commit, whose price is the disk's, and two hand-overs between threads: that is shown beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import report, ulak_side
from bench.figure import Bench, Row, bounded
from bench.load import percentile
from bench.place import in_database, in_file

CLAIMS = 200
LIMIT_MS = 2.0
FILL_TIMEOUT_SECONDS = 240


def rows(bench: Bench) -> Iterator[Row]:
    waiting = bench.scaled(2_000_000, 40_000)
    yield from _rows("SQLite", waiting, in_file(ulak_side.claim, waiting, CLAIMS, timeout_seconds=FILL_TIMEOUT_SECONDS))
    yield from _rows(
        "PostgreSQL",
        waiting,
        in_database(bench.server, ulak_side.claim, waiting, CLAIMS, timeout_seconds=FILL_TIMEOUT_SECONDS),
    )


def _rows(store: str, waiting: int, took_ms: list[tuple[float, float]]) -> Iterator[Row]:
    name = f"{store}: claim of 100 from {waiting:,} rows"
    inside, committed = zip(*took_ms, strict=True)
    yield bounded(f"{name}, p50", "ms", percentile(inside, 50), LIMIT_MS)
    yield bounded(f"{name}, p99", "ms", percentile(inside, 99))
    yield bounded(f"{name}, committed and handed over, p50", "ms", percentile(committed, 50))


if __name__ == "__main__":
    report.alone("claim", rows)
