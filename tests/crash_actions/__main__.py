"""`python -m tests.crash_actions [--kills N] [--faults] [--kafka]`: kill real servers while they run action plans."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tests.crash_actions.providers import NONE, Faults
from tests.crash_actions.run import Report, Run
from tests.crash_http.__main__ import place, table

MIN_SUCCESS, MAX_DEAD = 0.995, 0.003
console = Console()


def main() -> int:
    options = _parse()
    stores = ["sqlite", "postgres"] if options.store == "both" else [options.store]
    reports = {store: _run(store, options) for store in stores}
    console.print(table(reports, "What the kills cost, with action plans"))
    for store, report in reports.items():
        console.print(f"{store}: success {report.success:.4%}, dead letters {report.dead_share:.4%}")
    if options.json is not None:
        options.json.write_text(json.dumps({store: asdict(one) for store, one in reports.items()}, indent=2) + "\n")
    return int(not all(_is_good(report) for report in reports.values()))


def _is_good(report: Report) -> bool:
    return report.is_clean and report.success >= MIN_SUCCESS and report.dead_share <= MAX_DEAD


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash_actions", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="on each store (100)")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--faults", action="store_true", help="providers fail, hang, throttle and go dark as well")
    parser.add_argument("--kafka", action="store_true", help="half of the requests over Kafka, whose brokers restart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def _run(store: str, options: argparse.Namespace) -> Report:
    faults = Faults() if options.faults else NONE
    with place(store) as (address, folder), Progress(console=console) as bar:
        task = bar.add_task(store, total=options.kills)
        run = Run(address, folder, options.seed, faults=faults, kafka=options.kafka)
        return asyncio.run(run.go(options.kills, lambda done: bar.update(task, completed=done)))


if __name__ == "__main__":
    sys.exit(main())
