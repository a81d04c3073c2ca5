"""`python -m bench [--quick] [--only name] [--json path]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import (
    actions_neighbours,
    actions_plans,
    bulkhead,
    claim,
    compute_chaos,
    compute_data,
    compute_load,
    compute_peers,
    compute_script,
    console_pages,
    dispatch,
    end_to_end,
    enqueue,
    kafka_accept,
    memory,
    neighbours,
    notify_accept,
    notify_dead_endpoint,
    notify_deliveries,
    notify_latency,
    report,
    timers,
    wake,
)
from bench.figure import Figures

FIGURES: dict[str, Figures] = {
    "enqueue": enqueue.rows,
    "end_to_end": end_to_end.rows,
    "claim": claim.rows,
    "wake": wake.rows,
    "timers": timers.rows,
    "memory": memory.rows,
    "bulkhead": bulkhead.rows,
    "neighbours": neighbours.rows,
    "notify_accept": notify_accept.rows,
    "console_pages": console_pages.rows,
    "actions_plans": actions_plans.rows,
    "actions_neighbours": actions_neighbours.rows,
    "kafka_accept": kafka_accept.rows,
    "notify_latency": notify_latency.rows,
    "notify_deliveries": notify_deliveries.rows,
    "notify_dead_endpoint": notify_dead_endpoint.rows,
    "dispatch": dispatch.rows,
    "compute_peers": compute_peers.rows,
    "compute_data": compute_data.rows,
    "compute_script": compute_script.rows,
    "compute_load": compute_load.rows,
    "compute_chaos": compute_chaos.rows,
}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Ulak beside its peers.")
    parser.add_argument("--quick", action="store_true", help="one short round of each: a smoke test, not a result")
    parser.add_argument("--only", action="append", choices=FIGURES, metavar="NAME", help=f"one of {', '.join(FIGURES)}")
    parser.add_argument("--json", type=Path, help="where to write the results (default: bench/results/)")
    options = parser.parse_args()
    path = options.json or RESULTS / ("quick.json" if options.quick else "full.json")
    return report.run({name: FIGURES[name] for name in options.only or FIGURES}, options.quick, path)


if __name__ == "__main__":
    raise SystemExit(main())
