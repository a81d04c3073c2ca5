"""Syncs of GİB-shaped lists: first, with churn, and with the same bytes; beside the seed's pipeline on PostgreSQL.

    python -m bench.changes --users 300000 [--store sqlite|postgres] [--seed-pipeline]

Syncs run in `ulak serve`; CPU seconds are those of all its processes, and of PostgreSQL's where it is used. Archives,
which either writes after a sync, are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench import changes_seed
from ulak.changes.generator import Plan, write_lists

PAGES = 200
LOOK_SECONDS = 0.2  # each look is a request, which the server's CPU seconds have in them
ARCHIVE_SECONDS = 3600


def family_of(root: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    family, grown = {root}, True
    while grown:
        found = {pid for pid, parent in parents.items() if parent in family} | family
        grown, family = found != family, found
    return family


def tree_rss(root: int) -> int:
    """Resident bytes of a process and all below it; shared pages count by their share."""
    total = 0
    for pid in family_of(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def tree_cpu(root: int) -> float:
    """CPU seconds of a process and all below it, those that have ended included."""
    ticks = 0
    for pid in family_of(root):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Server:
    """`ulak serve` over the lists of a folder."""

    def __init__(self, folder: Path, address: str, postmaster: int | None) -> None:
        self._lists = folder / "published"
        self._lists.mkdir()
        self._roots = [] if postmaster is None else [postmaster]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        env = {
            **os.environ,
            "ULAK_STORE": address,
            "ULAK_CHANGES__FOLDER": str(folder / "changes"),
            "ULAK_CHANGES__GIB__PK_URL": (self._lists / "PK").as_uri(),
            "ULAK_CHANGES__GIB__GB_URL": (self._lists / "GB").as_uri(),
        }
        command = [sys.executable, "-m", "ulak", "serve", "--set", f"http.port={self._port}"]
        self._child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._roots.append(self._child.pid)
        for _ in range(600):
            with contextlib.suppress(OSError):
                self.ask("GET", "/readyz")
                return
            time.sleep(0.1)
        raise SystemExit("the server did not start")

    def close(self) -> None:
        self._child.terminate()
        self._child.wait(60)

    def ask(self, method: str, path: str) -> dict[str, Any]:
        with urlopen(Request(f"http://127.0.0.1:{self._port}{path}", method=method), timeout=60) as answer:
            return json.loads(answer.read())

    def sync(self, paths: dict[str, Path]) -> dict[str, float]:
        """Wall and CPU seconds of one sync and its peak of memory; its archives are waited for, and not counted."""
        for role, path in paths.items():
            (self._lists / f"{role}.new").write_bytes(path.read_bytes())
            (self._lists / f"{role}.new").replace(self._lists / role)
        cpu, peak = self._cpu(), 0
        begun = self.ask("POST", "/api/changes/gib/sync")["syncId"]
        while (found := self.ask("GET", f"/api/changes/gib/syncs/{begun}"))["status"] == "running":
            peak = max(peak, tree_rss(self._child.pid))
            time.sleep(LOOK_SECONDS)
        spent = self._cpu() - cpu
        if found["status"] != "success":
            raise SystemExit(f"the sync ended as {found}")
        changes = sum(feed["added"] + feed["modified"] + feed["removed"] for feed in found["feeds"].values())
        self._wait_for_archives()
        return {"wall": found["seconds"], "cpu": spent, "peak_mb": peak / 1e6, "changes": changes}

    def _cpu(self) -> float:
        return sum(map(tree_cpu, self._roots))

    def _wait_for_archives(self) -> None:
        given_up = time.monotonic() + ARCHIVE_SECONDS
        for feed, state in self.ask("GET", "/api/v1/status")["feeds"].items():
            while state["cursor"] not in self._archived(feed):
                if time.monotonic() > given_up:
                    raise SystemExit(f"the archive of {feed} was not written within {ARCHIVE_SECONDS} s")
                time.sleep(LOOK_SECONDS)

    def _archived(self, feed: str) -> list[str]:
        return [one["cursor"] for one in self.ask("GET", f"/api/v1/{feed}/archives")["items"]]

    def pages(self) -> dict[str, float]:
        """A page of 1,000 at any depth of the log, over one connection, until its last byte, in milliseconds."""
        path = f"/api/v1/einvoice/changes?since={time.strftime('%Y-%m-%d')}T00:00:00&pageSize=1000"
        pages, took = max(self.ask("GET", path)["totalPages"], 1), []
        with contextlib.closing(HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            for number in range(PAGES):
                began = time.monotonic()
                connection.request("GET", f"{path}&page={1 + number % pages}")
                connection.getresponse().read()
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
        folder, postmaster = Path(name), None
        address = f"sqlite:///{folder}/ulak.db"
        if given.store == "postgres" or given.seed_pipeline:
            from tests.postgres_server import fresh_database

            database = stack.enter_context(fresh_database())
            postmaster = changes_seed.postmaster_of(database)
            address = database if given.store == "postgres" else address
        with ProcessPoolExecutor() as pool:
            plans = [Plan(given.users, number, given.churn) for number in (0, 1)]
            lists = list(pool.map(write_lists, [folder / "0", folder / "1"], plans))
        with contextlib.closing(Server(folder, address, postmaster if given.store == "postgres" else None)) as server:
            for step, paths in (("first sync", lists[0]), ("churn", lists[1]), ("same bytes", lists[1])):
                told(f"ulak, {step}", server.sync(paths))
                if given.seed_pipeline and step != "same bytes":  # in turn: the machine is the same for both
                    told(f"seed, {step}", changes_seed.run(database, paths, tree_cpu))
            told("page of 1,000", server.pages())
        if given.seed_pipeline:
            changes_seed.clean(database)


if __name__ == "__main__":
    main()
