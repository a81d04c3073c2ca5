"""Compares the peers' own settings (`python -m bench.sweep`), so that each is measured at its best; not a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import postgres_server
from bench.child import MeasurementFailed, measure
from bench.folder import temporary_path
from bench.peers import huey_side, pgqueuer_side, procrastinate_side

PRODUCERS = 100


def main() -> None:
    table = Table("peer", "settings", "jobs/s", title="Settings of the peers, producers and workers together")
    for workers, worker_type in ((1, "thread"), (2, "thread"), (4, "thread"), (1, "process"), (2, "process")):
        with temporary_path() as path:
            rate = _try(huey_side.end_to_end, path, PRODUCERS, 3_000, workers, worker_type)
        table.add_row("Huey", f"{workers} × {worker_type}", rate)
    with postgres_server.running() as server:
        _sweep_postgres(server, table)
    Console().print(table)


def _sweep_postgres(server: postgres_server.Server, table: Table) -> None:
    for concurrency, pool in ((1, 10), (10, 10), (20, 10), (20, 20), (50, 10), (50, 30), (100, 20)):
        with server.database() as uri:
            rate = _try(procrastinate_side.end_to_end, uri, PRODUCERS, 1_500, concurrency, pool)
        table.add_row("Procrastinate", f"concurrency {concurrency}, pool {pool}", rate)
    for batch, pool in ((10, 10), (100, 10), (500, 5), (500, 10), (500, 20), (1_000, 10), (2_000, 10)):
        with server.database() as uri:
            together = _try(pgqueuer_side.end_to_end, uri, PRODUCERS, 4_000, batch, pool)
        with server.database() as uri:
            drained = _try(pgqueuer_side.drain, uri, 30_000, batch, pool)
        table.add_row("PgQueuer", f"batch {batch}, pool {pool}", f"{together} (drain {drained})")


def _try(side: Callable[..., float], *arguments: Any) -> str:
    try:
        return f"{measure(side, *arguments):,.0f}"
    except MeasurementFailed as failure:
        return str(failure).splitlines()[-1]


if __name__ == "__main__":
    main()
