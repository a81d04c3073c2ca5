"""Syncs of GİB-shaped lists: first, with churn, and with the same bytes; beside the seed's pipeline on PostgreSQL.

    python -m bench.changes --users 300000 [--store sqlite|postgres] [--seed-pipeline]

Each sync is the command `ulak changes sync gib` without a server: its CPU seconds are those of all its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench import changes_seed
from ulak import Ulak
from ulak.changes.generator import Plan, write_lists
from ulak.settings import load

PAGES = 200


def tree_rss(root: int) -> int:
    """Resident bytes of a process and all below it; shared pages count by their share."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    family, grown = {root}, True
    while grown:
        found = {pid for pid, parent in parents.items() if parent in family} | family
        grown, family = found != family, found
    total = 0
    for pid in family:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def run(command: list[str], env: dict[str, str]) -> dict[str, float]:
    """Wall and CPU seconds and the peak of a command with all its processes."""
    began = time.monotonic()
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.2):
            peak = max(peak, tree_rss(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(child.pid, 0)
    over.set()
    watcher.join()
    wall = time.monotonic() - began
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": peak / 1e6, "status": status}


async def read_pages(overrides: dict[str, object]) -> dict[str, float]:
    """A page of 1,000 at any depth of the log of the last sync, in milliseconds."""
    async with Ulak(settings=load(env={}, overrides=overrides).settings, work=False) as ulak:
        feed = await ulak.changes.feeds.feed("einvoice")
        pages = max((feed.head_pos - feed.floor_pos) // 1000, 1)
        took = []
        for number in range(PAGES):
            began = time.monotonic()
            await ulak.changes.feeds.changes("einvoice", (feed.stamp or 0) - 86_400, None, 1 + number % pages, 1000)
            took.append((time.monotonic() - began) * 1000)
    took.sort()
    return {"p50_ms": statistics.median(took), "p99_ms": took[int(len(took) * 0.99) - 1]}


def told(name: str, figures: dict[str, float]) -> None:
    print(f"{name:28}", "  ".join(f"{key} {value:.2f}" for key, value in figures.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--churn", type=float, default=0.015, help="about two thirds of it are changes")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--seed-pipeline", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        address = f"sqlite:///{folder}/ulak.db"
        if given.store == "postgres" or given.seed_pipeline:
            from tests.postgres_server import fresh_database

            database = stack.enter_context(fresh_database())
            address = database if given.store == "postgres" else address
        lists = [write_lists(folder / str(number), Plan(given.users, number, given.churn)) for number in (0, 1)]
        overrides = {"store": address, "changes.folder": str(folder / "changes")}
        env = {
            **os.environ,
            "ULAK_STORE": address,
            "ULAK_CHANGES__FOLDER": str(folder / "changes"),
            "ULAK_CLIENT__URL": "",
        }
        for step, paths in (("first sync", lists[0]), ("churn", lists[1]), ("same bytes", lists[1])):
            command = [sys.executable, "-m", "ulak", "changes", "sync", "gib"]
            command += ["--pk", str(paths["PK"]), "--gb", str(paths["GB"])]
            told(f"ulak, {step}", run(command, env))
        told("page of 1,000", asyncio.run(read_pages(overrides)))
        if given.seed_pipeline:
            for step, paths in (("first sync", lists[0]), ("churn", lists[1])):
                told(f"seed, {step}", changes_seed.run(database, paths))
            changes_seed.clean(database)


if __name__ == "__main__":
    main()
