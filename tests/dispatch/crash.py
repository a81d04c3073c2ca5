"""A life that opens, answers and lets expire until it is killed at a named point; then another one, and an audit of the
tables and messages. `python -m tests.crash_dispatch` kills whole servers at random."""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import os
import random
import signal
import time
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


def live(address: str, seed: int, point: str, reach: int) -> None:
    """A life in a process of its own, until it has reached the point."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
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


def kill_one(address: str, seed: int, point: str, reach: int) -> bool:
    """True when the life ended at its point."""
    child = multiprocessing.get_context("spawn").Process(target=live, args=(address, seed, point, reach))
    child.start()
    child.join(30)
    if child.is_alive():
        child.kill()
        child.join()
        return False
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
