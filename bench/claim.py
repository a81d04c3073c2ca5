"""How long a claim of 100 takes, commit included, from two million jobs: half ready, half not to be walked over."""

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


def _rows(store: str, waiting: int, took_ms: list[float]) -> Iterator[Row]:
    name = f"{store}: claim of 100 from {waiting:,} rows"
    yield bounded(f"{name}, p50", "ms", percentile(took_ms, 50), LIMIT_MS)
    yield bounded(f"{name}, p99", "ms", percentile(took_ms, 99))


if __name__ == "__main__":
    report.alone("claim", rows)
