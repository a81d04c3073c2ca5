"""What the figures of deadlines measure: how late offers end, and how soon a new start makes the next offer."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from typing import Any

from bench.dispatch_side import fill, in_turn, task_at, to_call, ulak_at
from ulak import Ulak
from ulak.spine.query import Query

SOON_SECONDS = 2


def _query(text: str) -> Query:
    return Query("bench", text, text, ())


_LATENESS = _query("SELECT ended_at - deadline_at FROM dispatch_offer WHERE state = 'EXPIRED'")
_ASKED_AGAIN = _query("SELECT count(*) FROM dispatch_offer HAVING count(*) > (SELECT count(*) FROM dispatch_task)")


def _open(ulak: Ulak, spot: tuple[float, float], deadline_seconds: float) -> Any:
    return to_call(ulak.dispatch.open, {**task_at(spot), "deadlineSeconds": deadline_seconds})


def lateness(place: str, offers: int, per_second: int, seconds: float) -> list[float]:
    """Milliseconds from an offer's deadline to its end, with many more open offers in the table."""

    async def run() -> list[float]:
        async with ulak_at(place, work=True, searches=1) as ulak:
            spread = [(41 + one * 0.02 % 20, 29 + one // 1000 * 0.02) for one in range(offers)]
            await fill(ulak, spread)
            soon = set(random.Random(6).sample(range(offers), round(per_second * seconds)))
            await in_turn(200, [_open(ulak, spot, 86_400) for at, spot in enumerate(spread) if at not in soon])
            due = [_open(ulak, spread[at], SOON_SECONDS + nth / per_second) for nth, at in enumerate(sorted(soon))]
            await in_turn(200, due)
            await asyncio.sleep(seconds + SOON_SECONDS + 2)
            rows = await ulak.store.read(lambda tx: tx.rows(_LATENESS))
            return [float(late) for (late,) in rows]

    return asyncio.run(run())


def restart(place: str, offers: int) -> float:
    """Seconds from the start of a process to the first offer that it makes, when many are overdue."""
    asyncio.run(_leave_overdue(place, offers))
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "bench.dispatch_deadlines", place], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        took = time.perf_counter() - began
        process.kill()
    if not said:
        raise RuntimeError("no offer was made after the start")
    return took


async def _leave_overdue(place: str, offers: int) -> None:
    """Pairs of helpers far apart: one is asked and lets its time pass, the other is to be asked then."""
    async with ulak_at(place) as ulak:
        spots = [(41 + one * 0.02 % 20, 29 + one // 1000 * 0.02) for one in range(offers)]
        await fill(ulak, [spot for spot in spots for _ in range(2)])
        await in_turn(200, [_open(ulak, spot, 1) for spot in spots])
        await asyncio.sleep(1)


async def _first_offer(place: str) -> None:
    async with ulak_at(place, work=True) as ulak:
        while not await ulak.store.read(lambda tx: tx.rows(_ASKED_AGAIN)):
            await asyncio.sleep(0.005)
        print("offered", flush=True)


if __name__ == "__main__":
    asyncio.run(_first_offer(sys.argv[1]))
