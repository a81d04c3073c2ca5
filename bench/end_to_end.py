"""Jobs per second from enqueue to done, producers and workers together; then drain only; then many more producers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from bench import report, ulak_side
from bench.figure import Bench, Row, alternate, compared, paired
from bench.peers import huey_side, pgqueuer_side, procrastinate_side, raw_postgres, raw_sqlite
from bench.place import in_database, in_file

PRODUCERS = 100
CROWD = 2_000


def rows(bench: Bench) -> Iterator[Row]:
    yield from _sqlite(bench)
    yield _crowd(bench)
    yield from _postgres(bench)
    yield from _drain(bench)


def _sqlite(bench: Bench) -> Iterator[Row]:
    # Each side gets as many jobs as keep it busy for a few seconds; the figure is a rate. The limit is taken twice: at
    # the batch that a claim has in this very run (as many producers as there are can't fill a larger one), which is
    # what the promise is about, and at the largest batch that a claim may have. The limit hangs on the disk and Ulak on
    # the cores, so single rounds differ a lot: there are many.
    batch = round(in_file(ulak_side.claim_size, PRODUCERS, bench.scaled(40_000, 10_000)))
    raw_jobs = bench.scaled(100_000, 50_000)
    same, largest = (f"raw SQLite claim and delete, {size} at once" for size in (batch, ulak_side.BATCH))
    samples = alternate(
        bench.rounds * bench.scaled(3, 1),
        {
            "Ulak": partial(in_file, ulak_side.end_to_end, PRODUCERS, bench.scaled(50_000, 20_000)),
            "Huey": partial(in_file, huey_side.end_to_end, PRODUCERS, bench.scaled(2_500, 1_000)),
            same: partial(in_file, raw_sqlite.claim_and_delete, batch, raw_jobs),
            largest: partial(in_file, raw_sqlite.claim_and_delete, ulak_side.BATCH, raw_jobs),
        },
    )
    promised = {"Huey": 10.0, same: 0.25}
    yield from compared(f"SQLite: end to end, {PRODUCERS} producers", "jobs/s", samples, promised)


def _postgres(bench: Bench) -> Iterator[Row]:
    inside = partial(in_database, bench.server)
    samples = alternate(
        bench.rounds,
        {
            "Ulak": partial(inside, ulak_side.end_to_end, PRODUCERS, bench.scaled(50_000, 10_000)),
            "Procrastinate": partial(inside, procrastinate_side.end_to_end, PRODUCERS, bench.scaled(1_000, 250)),
            "PgQueuer": partial(inside, pgqueuer_side.end_to_end, PRODUCERS, bench.scaled(4_000, 1_000)),
            "raw SQL": partial(inside, raw_postgres.end_to_end, ulak_side.BATCH, bench.scaled(100_000, 30_000)),
        },
    )
    promised = {"Procrastinate": 20.0, "PgQueuer": 3.0}
    yield from compared(f"PostgreSQL: end to end, {PRODUCERS} producers", "jobs/s", samples, promised)


def _drain(bench: Bench) -> Iterator[Row]:
    inside = partial(in_database, bench.server)
    samples = alternate(
        bench.rounds,
        {
            "Ulak": partial(inside, ulak_side.drain, bench.scaled(60_000, 20_000)),
            "PgQueuer": partial(inside, pgqueuer_side.drain, bench.scaled(30_000, 10_000)),
            "raw SQL": partial(inside, raw_postgres.drain, ulak_side.BATCH, bench.scaled(100_000, 30_000)),
        },
    )
    yield from compared("PostgreSQL: drain", "jobs/s", samples, {"PgQueuer": 1.0})


def _crowd(bench: Bench) -> Row:
    samples = alternate(
        bench.rounds,
        {
            str(producers): partial(in_file, ulak_side.settled, producers, bench.seconds)
            for producers in (PRODUCERS, CROWD)
        },
    )
    few, many = (median(samples[str(producers)]) for producers in (PRODUCERS, CROWD))
    ratio = paired(samples[str(CROWD)], samples[str(PRODUCERS)])
    return Row(
        f"SQLite: settled with {CROWD:,} producers",
        "jobs/s",
        many,
        against=f"{PRODUCERS} producers",
        other=few,
        ratio=ratio,
        target="≥ 60%",
        met=ratio >= 0.6,
        detail={"samples": samples},
    )


if __name__ == "__main__":
    report.alone("end_to_end", rows)
