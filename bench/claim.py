"""How long a claim of 100 takes from two million jobs: half ready, half not to be walked over.

The promise is about the claim itself, which must not grow with the table. Beside it stand the same claim by a bare
statement on a bare table, the least that the database takes for it; and the time until the worker has the jobs, which
takes a commit, whose price is the disk's, and two hand-overs between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench import report, ulak_side
from bench.figure import Bench, Row, bounded
from bench.load import CLAIMED, percentile
from bench.peers import raw_postgres, raw_sqlite
from bench.place import in_database, in_file

CLAIMS = 200
LIMIT_MS = 2.0
FILL_TIMEOUT_SECONDS = 240


def rows(bench: Bench) -> Iterator[Row]:
    inside = partial(in_database, bench.server)
    yield from _rows(bench, "SQLite", "raw SQLite", in_file, raw_sqlite.claim)
    yield from _rows(bench, "PostgreSQL", "raw SQL", inside, raw_postgres.claim)


def _rows(
    bench: Bench, store: str, limit: str, place: Callable[..., Any], raw_claim: Callable[..., list[float]]
) -> Iterator[Row]:
    waiting = bench.scaled(2_000_000, 40_000)
    took_ms = place(ulak_side.claim, waiting, CLAIMS, timeout_seconds=FILL_TIMEOUT_SECONDS)
    raw_ms = place(raw_claim, waiting, CLAIMS, timeout_seconds=FILL_TIMEOUT_SECONDS)
    inside, committed = zip(*took_ms, strict=True)
    name, ours, raw = (
        f"{store}: claim of {CLAIMED} from {waiting:,} rows",
        percentile(inside, 50),
        percentile(raw_ms, 50),
    )
    yield bounded(f"{name}, p50", "ms", ours, LIMIT_MS)
    yield Row(f"{name}, p50", "ms", ours, against=limit, other=raw, ratio=ours / raw)
    yield bounded(f"{name}, p99", "ms", percentile(inside, 99))
    yield bounded(f"{name}, committed and handed over, p50", "ms", percentile(committed, 50))


if __name__ == "__main__":
    report.alone("claim", rows)
