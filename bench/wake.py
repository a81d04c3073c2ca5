"""From the call of enqueue to the start of the handler, durable commit included.

A wake-up contains a commit, and now and then the disk takes its time: a bare commit of SQLite is measured in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, tails
from bench.peers import raw_sqlite
from bench.place import in_database, in_file


def rows(bench: Bench) -> Iterator[Row]:
    times = bench.scaled(500, 200)
    found = alternate(
        bench.rounds,
        {
            "in process": partial(in_file, ulak_side.wake, times),
            "commit": partial(in_file, raw_sqlite.commits, times),
            "between": partial(in_database, bench.server, ulak_side.wake_between_processes, bench.scaled(3, 2)),
        },
    )
    yield from tails("SQLite: wake in process", found["in process"], 5)
    yield from tails("SQLite: a bare commit beside it", found["commit"])
    yield from tails("PostgreSQL: wake between processes, under load", found["between"], 30)


if __name__ == "__main__":
    report.alone("wake", rows)
