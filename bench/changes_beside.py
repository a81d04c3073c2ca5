"""Jobs beside a first sync: from accept to done, without one and with one; how long its slices take.

python -m bench.changes_beside --users 300000 [--store sqlite|postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import uvloop

from bench.changes import told
from bench.load import percentile
from ulak import Job, Ulak
from ulak.changes.generator import Plan, write_lists
from ulak.settings import load
from ulak.spine.loops import bulk

JOBS_PER_SECOND = 100
ALONE_SECONDS = 10.0


class _TimedSlices(bulk.SliceSize):
    """The usual sizes; what each slice took is kept."""

    took: ClassVar[list[float]] = []

    def adapt(self, rows: int, seconds: float) -> None:
        self.took.append(seconds * 1000)
        super().adapt(rows, seconds)


async def measure(address: str, folder: Path, lists: dict[str, Path]) -> None:
    urls = {f"changes.gib.{role.lower()}_url": path.as_uri() for role, path in lists.items()}
    ulak = Ulak(settings=load(env={}, overrides={"store": address, "changes.folder": str(folder), **urls}).settings)
    took: list[float] = []

    @ulak.handles("bench.tick")
    async def tick(job: Job) -> None:
        took.append((time.monotonic() - job.payload["at"]) * 1000)

    async def tick_until(is_over: Callable[[], bool]) -> dict[str, float]:
        took.clear()
        while not is_over():
            await ulak.enqueue("bench.tick", {"at": time.monotonic()})
            await asyncio.sleep(1 / JOBS_PER_SECOND)
        return {"jobs": len(took), "p50_ms": percentile(took, 50), "p99_ms": percentile(took, 99)}

    async with ulak:
        ends_at = time.monotonic() + ALONE_SECONDS
        alone = await tick_until(lambda: time.monotonic() > ends_at)
        told("jobs alone", alone)
        sync = asyncio.create_task(ulak.changes.sync("gib"))
        beside = await tick_until(sync.done)
        told("jobs beside a first sync", {**beside, "ratio": beside["p99_ms"] / alone["p99_ms"]})
        slices = _TimedSlices.took
        told("its slices", {"slices": len(slices), "p50_ms": percentile(slices, 50), "p99_ms": percentile(slices, 99)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    bulk.SliceSize = _TimedSlices  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        address = f"sqlite:///{folder}/ulak.db"
        if given.store == "postgres":
            from tests.postgres_server import fresh_database

            address = stack.enter_context(fresh_database())
        uvloop.run(measure(address, folder / "changes", write_lists(folder / "0", Plan(given.users))))


if __name__ == "__main__":
    main()
