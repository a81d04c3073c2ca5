"""How late timers start their handler, with 100,000 of them armed and 1,667 due in every second.

A timer is claimed before it is due, but a disk that takes its time may still make it late: a bare commit of SQLite is
measured in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, tails
from bench.peers import raw_sqlite
from bench.place import in_database, in_file

DUE_PER_SECOND = 1_667
LIMIT_MS = 10


def rows(bench: Bench) -> Iterator[Row]:
    armed = bench.scaled(100_000, 20_000)
    load = (ulak_side.timers, armed, armed / DUE_PER_SECOND, bench.scaled(5, 3))
    found = alternate(
        bench.rounds,
        {
            "SQLite": partial(in_file, *load),
            "commit": partial(in_file, raw_sqlite.commits, bench.scaled(500, 200)),
            "PostgreSQL": partial(in_database, bench.server, *load),
        },
    )
    for store in ("SQLite", "PostgreSQL"):
        yield from tails(f"{store}: timer lateness, {armed:,} armed", found[store], LIMIT_MS)
    yield from tails("SQLite: a bare commit in turn with them", found["commit"])


if __name__ == "__main__":
    report.alone("timers", rows)
