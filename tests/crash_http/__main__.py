"""`python -m tests.crash_http [--kills N] [--store sqlite|postgres|both]`: kill real servers and workers under load."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.crash_http.run import Run

console = Console()


def main(run: type[Any] = Run, title: str = "over HTTP", usual_kills: int = 1000) -> int:
    """Kill on each store and print what it cost; `run` says what is done meanwhile and how it is counted."""
    options = _parse(f"python -m {run.__module__.rpartition('.')[0]}", title, usual_kills)
    stores = ["sqlite", "postgres"] if options.store == "both" else [options.store]
    reports: dict[str, Any] = {}
    for store in stores:
        reports[store] = _run(run, store, options.kills, options.seed)
        console.print(_table(reports, title))  # now: the next store may take an hour
        if options.json is not None:
            options.json.write_text(json.dumps({name: asdict(one) for name, one in reports.items()}, indent=2) + "\n")
    return int(not all(report.is_clean for report in reports.values()))


def _parse(prog: str, title: str, usual_kills: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=prog, description=f"Kill real servers and workers under load: {title}.")
    parser.add_argument("--kills", type=int, default=usual_kills, help=f"on each store ({usual_kills})")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def _run(run: type[Any], store: str, kills: int, seed: int) -> Any:
    with place(store) as (address, folder), Progress(console=console) as bar:
        task = bar.add_task(store, total=kills)
        return asyncio.run(run(address, folder, seed).go(kills, lambda done: bar.update(task, completed=done)))


@contextlib.contextmanager
def place(store: str) -> Iterator[tuple[str, Path]]:
    """The address of an empty store, and a folder for the log."""
    with tempfile.TemporaryDirectory(prefix="ulak-crash-") as folder:
        if store == "sqlite":
            yield f"sqlite:///{folder}/ulak.db", Path(folder)
            return
        from tests.postgres_server import fresh_database  # a server starts only for those who ask

        with fresh_database() as address:
            yield address, Path(folder)


def _table(reports: dict[str, Any], title: str) -> Table:
    table = Table(title=f"What the kills cost, {title}")
    table.add_column("")
    for store in reports:
        table.add_column(store, justify="right")
    for name in asdict(next(iter(reports.values()))):
        table.add_row(name.replace("_", " "), *(_shown(getattr(report, name)) for report in reports.values()))
    return table


def _shown(value: object) -> str:
    if isinstance(value, list):
        return str(len(value))
    return ", ".join(f"{name} {number}" for name, number in value.items()) if isinstance(value, dict) else str(value)


if __name__ == "__main__":
    sys.exit(main())
