"""`make crash`: kill real processes at random moments on each store, and print what that cost."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.crash.killer import Killer
from tests.crash.ledger import Verdict
from tests.crash.nursery import Nursery

console = Console()


def main() -> int:
    options = _parse()
    stores = ["sqlite", "postgres"] if options.store == "both" else [options.store]
    reports = {}
    with contextlib.closing(Nursery()) as nursery:
        for store in stores:
            reports[store] = _run(nursery, store, options.kills, options.seed)
            _tell(reports, options.json)  # now: the next store may take an hour
    return 1 if any(report["violations"] for report in reports.values()) else 0


def _tell(reports: dict[str, dict[str, Any]], path: Path | None) -> None:
    console.print(_table(reports))
    if path is not None:
        path.write_text(json.dumps(reports, indent=2) + "\n")
    for store, report in reports.items():
        for name, value in report["violations"].items():
            console.print(f"[bold red]{store}: {name}[/]: {str(value)[:2000]}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="on each store (1000)")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument(
        "--seed", type=int, default=1, help="the same moments again, as far as a machine repeats itself"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def _run(nursery: Nursery, store: str, kills: int, seed: int) -> dict[str, Any]:
    began = time.perf_counter()
    with _address(store) as address, _progress() as bar:
        task = bar.add_task(store, total=kills, note="")
        killer = Killer(nursery, address, seed)

        def tell(state: Killer) -> None:
            ledger = state.ledger
            note = f"{len(ledger.tokens):,} accepted, {ledger.second_runs:,} second runs"
            bar.update(task, completed=state.kills, note=note, refresh=True)

        verdict = killer.run(kills, tell)
    return _report(killer, verdict, time.perf_counter() - began)


def _report(killer: Killer, verdict: Verdict, seconds: float) -> dict[str, Any]:
    return {
        "kills": killer.kills,
        "freezes": killer.freezes,
        **{name: len(value) if isinstance(value, list | dict) else value for name, value in vars(verdict).items()},
        "seconds": round(seconds, 1),
        "violations": verdict.violations,
    }


@contextlib.contextmanager
def _address(store: str) -> Iterator[str]:
    if store == "postgres":
        from tests.postgres_server import fresh_database  # a server starts only for those who ask

        with fresh_database() as address:
            yield address
    else:
        with tempfile.TemporaryDirectory(prefix="ulak-crash-") as folder:
            yield f"sqlite:///{folder}/ulak.db"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        auto_refresh=False,
    )


def _table(reports: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="What the kills cost")
    table.add_column("")
    for store in reports:
        table.add_column(store, justify="right")
    for name in next(iter(reports.values())):
        if name != "violations":
            table.add_row(name.replace("_", " "), *(_shown(report[name]) for report in reports.values()))
    return table


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
