"""Compares the peers' own settings (`python -m bench.sweep`), so that each is measured at its best; not a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import postgres_server
from bench.child import MeasurementFailed
from bench.peers import huey_side, pgqueuer_side, procrastinate_side
from bench.place import in_database, in_file

PRODUCERS = 100


def main() -> None:
    table = Table("peer", "settings", "jobs/s", title="Settings of the peers, producers and workers together")
    for workers, worker_type in ((1, "thread"), (2, "thread"), (4, "thread"), (1, "process"), (2, "process")):
        rate = _try(in_file, huey_side.end_to_end, PRODUCERS, 3_000, workers, worker_type)
        table.add_row("Huey", f"{workers} × {worker_type}", rate)
    with postgres_server.running() as server:
        _sweep_postgres(server, table)
    Console().print(table)


def _sweep_postgres(server: postgres_server.Server, table: Table) -> None:
    for concurrency, pool in ((1, 10), (10, 10), (20, 10), (20, 20), (50, 10), (50, 30), (100, 20)):
        rate = _try(in_database, server, procrastinate_side.end_to_end, PRODUCERS, 1_500, concurrency, pool)
        table.add_row("Procrastinate", f"concurrency {concurrency}, pool {pool}", rate)
    for batch, pool in ((10, 10), (100, 10), (500, 5), (500, 10), (500, 20), (1_000, 10), (2_000, 10)):
        together = _try(in_database, server, pgqueuer_side.end_to_end, PRODUCERS, 4_000, batch, pool)
        drained = _try(in_database, server, pgqueuer_side.drain, 30_000, batch, pool)
        table.add_row("PgQueuer", f"batch {batch}, pool {pool}", f"{together} (drain {drained})")


def _try(measure_in: Callable[..., float], *arguments: Any) -> str:
    try:
        return f"{measure_in(*arguments):,.0f}"
    except MeasurementFailed as failure:
        return str(failure).splitlines()[-1]


if __name__ == "__main__":
    main()
