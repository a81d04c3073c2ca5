"""Durable enqueues per second from 1, 10 and 100 producers, each of which waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, compared
from bench.peers import huey_side, pgqueuer_side, procrastinate_side, raw_postgres, raw_sqlite
from bench.place import in_database, in_file

Sides = dict[str, Callable[[str, int, float], float]]
PROMISED_TO_HUEY = {100: 10.0}


def rows(bench: Bench) -> Iterator[Row]:
    crowds = (1, 100) if bench.quick else (1, 10, 100)
    for producers in crowds:
        yield from _sqlite(bench, producers)
    for producers in crowds:
        yield from _postgres(bench, producers)


def _sqlite(bench: Bench, producers: int) -> Iterator[Row]:
    sides: Sides = {"Ulak": ulak_side.enqueue, "Huey": huey_side.enqueue}
    if not bench.quick:
        sides["raw SQLite"] = raw_sqlite.enqueue
    samples = alternate(
        bench.rounds, {name: partial(in_file, side, producers, bench.seconds) for name, side in sides.items()}
    )
    promised = PROMISED_TO_HUEY.get(producers)
    yield from compared(
        f"SQLite: durable enqueues, {_count(producers)}", "/s", samples, {"Huey": promised} if promised else None
    )


def _postgres(bench: Bench, producers: int) -> Iterator[Row]:
    sides: Sides = {
        "Ulak": ulak_side.enqueue,
        "Procrastinate": procrastinate_side.enqueue,
        "PgQueuer": pgqueuer_side.enqueue,
    }
    if not bench.quick:
        sides["raw SQL"] = raw_postgres.enqueue
    samples = alternate(
        bench.rounds,
        {name: partial(in_database, bench.server, side, producers, bench.seconds) for name, side in sides.items()},
    )
    yield from compared(f"PostgreSQL: durable enqueues, {_count(producers)}", "/s", samples)


def _count(producers: int) -> str:
    return f"{producers} producer{'s' * (producers > 1)}"


if __name__ == "__main__":
    report.alone("enqueue", rows)
