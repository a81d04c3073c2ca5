"""Runs figures and shows them: one table for people, one JSON file for comparing runs."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import machine
from bench.child import MeasurementFailed
from bench.figure import Bench, Figures, Row


def run(figures: dict[str, Figures], quick: bool, path: Path | None) -> int:
    """Measure, print, write; answers the exit status (1 when a figure could not be measured)."""
    signal.signal(signal.SIGTERM, _leave)  # so that servers and folders are cleaned up then, too
    console = Console() if sys.stdout.isatty() else Console(width=150)
    begins = time.perf_counter()
    with ExitStack() as stack:
        bench = Bench(quick, stack)
        rows = [row for name, figure in figures.items() for row in _measured(name, figure, bench, console)]
        facts = machine.facts(bench.server.setting("server_version") if bench._server else None)
    seconds = time.perf_counter() - begins
    console.print(table(rows, facts, seconds))
    if path is not None:
        write(path, rows, facts, quick, seconds)
    return int(any(row.ulak is None for row in rows))


def alone(name: str, figure: Figures) -> None:
    """What `python -m bench.<name> [--quick]` does."""
    raise SystemExit(run({name: figure}, "--quick" in sys.argv[1:], None))


def _measured(name: str, figure: Figures, bench: Bench, console: Console) -> list[Row]:
    before, begins = machine.syncs_per_second(), time.perf_counter()
    rows: list[Row] = []
    try:
        with console.status(f"measuring {name}"):
            rows.extend(figure(bench))
    except MeasurementFailed as failure:
        console.print(f"[red]{name}:[/red] {failure}", highlight=False)
        rows.append(Row(f"{name}: not measured", "", None))
    spent, after = time.perf_counter() - begins, machine.syncs_per_second()
    # a neighbour that keeps the disk busy spoils every absolute figure: say so beside them
    console.print(
        f"[dim]{name}: {spent:.0f} s, {before:,.0f} syncs/s before, {after:,.0f} after[/dim]", highlight=False
    )
    for row in rows:
        row.detail["syncs_per_second"] = [round(before), round(after)]
    return rows


def table(rows: list[Row], facts: dict[str, Any], seconds: float) -> Table:
    shown = ", ".join(f"{name} {value}" for name, value in facts.items() if name != "packages")
    versions = ", ".join(f"{name} {value}" for name, value in facts["packages"].items())
    result = Table(title="Ulak beside its peers", caption=f"{shown}\n{versions}\n{seconds:.0f} s")
    for column in ("figure", "Ulak", "against", "its value", "ratio", "target", "met"):
        left = column in ("figure", "against", "met")
        result.add_column(column, justify="left" if left else "right", no_wrap=column != "figure")
    for row in rows:
        result.add_row(*_cells(row))
    return result


def _cells(row: Row) -> tuple[str, ...]:
    met = {None: "", True: "[green]yes[/green]", False: "[red]no[/red]"}[row.met]
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return row.figure, _number(row.ulak, row.unit), row.against, _number(row.other, row.unit), ratio, row.target, met


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"


def write(path: Path, rows: list[Row], facts: dict[str, Any], quick: bool, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": facts, "quick": quick, "seconds": round(seconds, 1), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)
