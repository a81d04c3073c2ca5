"""How late timers start their handler, with 100,000 of them armed and 1,667 due in every second.

A timer waits for a commit, and now and then the disk takes its time: a bare commit of SQLite is measured in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, tails
from bench.peers import raw_sqlite
from bench.place import in_file

DUE_PER_SECOND = 1_667
LIMIT_MS = 10


def rows(bench: Bench) -> Iterator[Row]:
    armed = bench.scaled(100_000, 20_000)
    found = alternate(
        bench.rounds,
        {
            "timers": partial(in_file, ulak_side.timers, armed, armed / DUE_PER_SECOND, bench.scaled(5, 3)),
            "commit": partial(in_file, raw_sqlite.commits, bench.scaled(500, 200)),
        },
    )
    yield from tails(f"SQLite: timer lateness, {armed:,} armed", found["timers"], LIMIT_MS)
    yield from tails("SQLite: a bare commit in turn with them", found["commit"])


if __name__ == "__main__":
    report.alone("timers", rows)
