"""A life that opens, answers and lets expire, and is killed; then another one, and an audit of the tables and messages.

`python -m tests.dispatch.crash --kills 1000` kills at random; the tests kill at every named point.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import structlog

from tests.dispatch.audit import faults
from ulak import Ulak
from ulak.dispatch.model import TaskState
from ulak.errors import Error
from ulak.settings import Settings
from ulak.spine import probe
from ulak.spine.query import Query
from ulak.spine.store import Tx

HELPERS = 40
# The message of every offer is somewhere: it waits, was delivered, died or expired. None may be lost.
LOST = """
SELECT id FROM dispatch_offer WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = message)
  AND NOT EXISTS (SELECT 1 FROM past WHERE past.id = message)
  AND NOT EXISTS (SELECT 1 FROM dead WHERE dead.id = message)"""


def settings_of(address: str) -> Settings:
    spine = {"ballast_mb": 0, "min_free_mb": 0, "lease_seconds": 1, "poison_deaths": 100}
    return Settings(store=address, dispatch={"pause_after_timeouts": 1000}, spine=spine)


def live(address: str, seed: int, point: str | None, reach: int) -> None:
    """A life in a process of its own, until somebody kills it or it has reached the point."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if point is not None:
        reached = itertools.count(1)
        probe.listen(point, lambda: os.kill(os.getpid(), signal.SIGKILL) if next(reached) == reach else None)
    asyncio.run(_live(address, random.Random(seed)))


async def _live(address: str, chance: random.Random) -> None:
    async with Ulak(address, settings=settings_of(address)) as ulak:
        for number in range(HELPERS):
            await ulak.dispatch.put_helper(f"h{number}", latitude=41 + number * 1e-5, longitude=29.0)
        await asyncio.gather(*(_person(ulak, chance) for _ in range(8)))


async def _person(ulak: Ulak, chance: random.Random) -> None:
    room = ulak.dispatch
    while True:
        try:
            deadline = chance.choice([1, 5])
            view = await room.open(
                requester_id="r", category="c", latitude=41.0, longitude=29.0, width=2, deadline_seconds=deadline
            )
            for pending in view.pending:
                verb = chance.choice([room.accept, room.reject, None])
                if verb is not None:
                    view = await verb(view.task.id, pending.helper)
            if view.helper is not None:
                await (room.complete if chance.random() < 0.8 else room.release)(view.task.id, view.helper)
        except Error:
            continue


def kill_one(address: str, seed: int, point: str | None = None, reach: int = 1, after: float = 10.0) -> bool:
    """True when the life ended at its point, or was killed after the given time."""
    child = multiprocessing.get_context("spawn").Process(target=live, args=(address, seed, point, reach))
    child.start()
    child.join(after if point is None else 30)
    if child.is_alive():
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        return point is None
    return child.exitcode == -signal.SIGKILL


async def recover(address: str, patience_seconds: float = 60) -> list[Any]:
    """The next life, which nobody kills: everything comes to its end. Returns what is wrong then."""
    ends_at = time.monotonic() + patience_seconds
    async with Ulak(address, settings=settings_of(address)) as ulak:
        for number in range(HELPERS):  # nobody new is asked
            await ulak.dispatch.put_helper(f"h{number}", is_active=False)
        states = (TaskState.SEARCHING, TaskState.OFFERED)
        while time.monotonic() < ends_at:
            if not any([await ulak.dispatch.tasks(status=state, limit=1) for state in states]):
                break
            await ulak.clock.wait(asyncio.Event(), 0.1)
        else:
            return ["some offers never ended"]
        wrong: list[Any] = await ulak.store.read(faults)
        return wrong + [("an offer's message is lost", row) for row in await ulak.store.read(_lost)]


def _lost(tx: Tx) -> list[tuple[Any, ...]]:
    return tx.rows(Query("lost", LOST, LOST, ()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dispatch.crash")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{Path(folder) / 'ulak.db'}"
        for number in range(options.kills):
            kill_one(address, number, after=chance.uniform(1.0, 3.0))
            if number % 50 == 49:
                wrong = asyncio.run(recover(address))
                print(f"{number + 1} kills, wrong: {wrong or 'nothing'}", flush=True)
                if wrong:
                    return 1
        return 1 if asyncio.run(recover(address)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
