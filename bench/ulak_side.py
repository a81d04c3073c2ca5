"""Ulak's side of every figure; the only place in the bench that knows Ulak's API.

Each function takes a place first, the path of a new file (SQLite) or the address of an empty database (PostgreSQL), and
runs in a process of its own. Settings are the defaults, apart from the bounds named here.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path

import structlog
import uvloop

from bench.child import CONTEXT
from bench.load import (
    CLAIMED,
    CLAIMS_PER_SECOND,
    PAYLOAD,
    SEED,
    WARMUP_SECONDS,
    Countdown,
    flood,
    produce_jobs,
)
from bench.postgres_server import refresh_statistics, settle_down
from ulak import Job, NewJob, Ulak
from ulak.cli.process import spare_the_collector
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.claim import Claimed, ClaimVerbs, Demand, Want
from ulak.stores.postgres.tx import PostgresTx

KIND = "bench.send"
PROBE = "bench.probe"
BATCH = 500  # how many jobs of the kind may run at once, which is the most that one claim takes
CAPACITY = 10_000_000
FILL = 5_000


def enqueue(place: str, producers: int, seconds: float) -> float:
    """Durable enqueues per second, with no worker beside."""

    async def run() -> float:
        ulak = _ulak(place, work=False)
        _handle(ulak, lambda: None)
        async with ulak:
            return await flood(lambda: ulak.enqueue(KIND, PAYLOAD), producers, seconds)

    return uvloop.run(run())


def end_to_end(place: str, producers: int, jobs: int) -> float:
    """Jobs per second from the first enqueue to the last one settled, producers and worker together."""

    async def run() -> float:
        ulak, countdown = _ulak(place), Countdown(jobs)
        _handle(ulak, countdown.tick)
        async with ulak:
            spare_the_collector()  # as `ulak worker` does
            begins = time.perf_counter()
            await produce_jobs(lambda: ulak.enqueue(KIND, PAYLOAD), producers, jobs, halfway=lambda: _refresh(place))
            await countdown.done.wait()
            await _all_settled(ulak, jobs)
            return jobs / (time.perf_counter() - begins)

    return uvloop.run(run())


def claim_size(place: str, producers: int, jobs: int) -> float:
    """How many jobs one claim takes in the run above, on average: the batch at which to look at the limit."""

    async def run() -> float:
        ulak, countdown = _ulak(place), Countdown(jobs)
        _handle(ulak, countdown.tick)
        async with ulak:
            await produce_jobs(lambda: ulak.enqueue(KIND, PAYLOAD), producers, jobs)
            await countdown.done.wait()
            return jobs / ulak.telemetry.counters[("claims", "", "")]

    return uvloop.run(run())


def drain(place: str, jobs: int) -> float:
    """Jobs per second from a queue that was filled before, the start of the worker included."""

    async def run() -> float:
        await _fill(place, [NewJob(KIND, PAYLOAD)] * jobs)
        _refresh(place)
        ulak, countdown = _ulak(place), Countdown(jobs)
        _handle(ulak, countdown.tick)
        begins = time.perf_counter()
        async with ulak:
            await countdown.done.wait()
            await _all_settled(ulak, jobs)
            return jobs / (time.perf_counter() - begins)

    return uvloop.run(run())


def settled(place: str, producers: int, seconds: float) -> float:
    """Jobs settled per second while that many producers press on without a pause."""

    async def run() -> float:
        ulak = _ulak(place)
        _handle(ulak, lambda: None)
        async with ulak:
            flooding = asyncio.create_task(flood(lambda: ulak.enqueue(KIND, PAYLOAD), producers, seconds + 0.5))
            await asyncio.sleep(WARMUP_SECONDS)
            before, begins = _settled(ulak), time.perf_counter()
            await asyncio.sleep(seconds)
            rate = (_settled(ulak) - before) / (time.perf_counter() - begins)
            await flooding
        return rate

    return uvloop.run(run())


def claim(place: str, waiting: int, claims: int) -> list[tuple[float, float]]:
    """Milliseconds of each claim of 100: of the claim in its transaction, and until the worker has it, committed.

    A quarter of the rows is not due, a quarter stands behind a key.
    """

    async def run() -> list[tuple[float, float]]:
        await _fill(place, _mixed(waiting))
        if "://" in place:
            settle_down(place)
        ulak = _ulak(place, work=False)
        _handle(ulak, lambda: None)
        claimer, inside, took = ClaimVerbs(), [], []

        def timed(tx: Tx, demands: list[Demand]) -> list[Claimed]:
            if isinstance(tx, PostgresTx):
                tx.begin()  # outside, as SQLite's and the bare statement's; it would go along with the claim
            begins = time.perf_counter()
            claimed = [claimer.claim(tx, demand) for demand in demands]
            inside.append(_ms_since(begins))
            return claimed

        verb = Verb(WriterQueue.CLAIM, timed)
        async with ulak:
            for number in range(claims):
                if number % CLAIMS_PER_SECOND == 0:
                    await asyncio.sleep(1)
                begins = time.perf_counter()
                demand = Demand(ulak.store.owner, (Want(KIND, CLAIMED, (2,)),), CLAIMED, {"async": CLAIMED})
                taken = await ulak.store.submit(verb, demand)
                took.append(_ms_since(begins))
                assert len(taken.leases) == CLAIMED
        return list(zip(inside, took, strict=True))

    return uvloop.run(run())


def wake(place: str, times: int) -> list[float]:
    """Milliseconds from the call of enqueue to the start of the handler, one job at a time on an idle worker."""

    async def run() -> list[float]:
        ulak, took, started = _ulak(place), [], asyncio.Event()
        gaps = random.Random(SEED)

        @ulak.handles(PROBE)
        async def note(job: Job) -> None:
            took.append(_ms_since(job.payload))
            started.set()

        async with ulak:
            for _ in range(times + 20):
                await asyncio.sleep(gaps.uniform(0.001, 0.004))
                started.clear()
                await ulak.enqueue(PROBE, time.perf_counter())
                await started.wait()
        return took[20:]

    return uvloop.run(run())


def wake_between_processes(place: str, seconds: float) -> list[float]:
    """The same from another process, beside two saturating producers whose jobs the same worker runs."""
    ready = CONTEXT.Event()
    producer = CONTEXT.Process(target=_press, args=(place, seconds, ready))
    producer.start()
    try:
        return uvloop.run(_note_wakes(place, seconds, ready))
    finally:
        producer.join(5)
        producer.kill()


async def _note_wakes(place: str, seconds: float, ready: Event) -> list[float]:
    ulak, took = _ulak(place), []
    _handle(ulak, lambda: None)

    @ulak.handles(PROBE)
    async def note(job: Job) -> None:
        took.append(_ms_since(job.payload))  # perf_counter is one clock for all processes on Linux

    async with ulak:
        ready.set()
        await asyncio.sleep(seconds + 1)
    return took[len(took) // 10 :]


def _press(place: str, seconds: float, ready: Event) -> None:
    async def run() -> None:
        ulak = _ulak(place, work=False)
        async with ulak:
            pressing = asyncio.create_task(flood(lambda: ulak.enqueue(KIND, PAYLOAD), 2, seconds))
            while not pressing.done():
                await ulak.enqueue(PROBE, time.perf_counter())
                await asyncio.sleep(0.01)

    ready.wait()
    uvloop.run(run())


def timers(place: str, armed: int, spread_seconds: float, seconds: float) -> list[float]:
    """Milliseconds by which each handler starts after its due time, while that many timers are armed."""

    async def run() -> list[float]:
        begins = time.time() + 2 + armed / 20_000  # armed by then, with the worker running
        dues = [begins + random.Random(SEED + index).uniform(0, spread_seconds) for index in range(armed)]
        await _fill(place, [NewJob(PROBE, due, due_at=datetime.fromtimestamp(due, UTC)) for due in dues])
        ulak, late = _ulak(place), []

        @ulak.handles(PROBE, concurrency=BATCH)
        async def note(job: Job) -> None:
            late.append((time.time() - job.payload) * 1000)

        async with ulak:
            assert time.time() < begins, "arming took longer than planned"
            await asyncio.sleep(begins + seconds - time.time())
        return late

    return uvloop.run(run())


def memory(place: str, waiting: int) -> dict[str, float]:
    """Megabytes of the process, now and at its peak, with that many jobs behind handlers that are stuck."""

    async def run() -> dict[str, float]:
        ulak, release = _ulak(place), asyncio.Event()

        @ulak.handles(KIND, capacity=CAPACITY)
        async def hold(_: Job) -> None:
            await release.wait()

        async with ulak:
            await produce_jobs(lambda: ulak.enqueue(KIND, PAYLOAD), 100, waiting)
            usage = _memory()
            release.set()
        return usage

    return uvloop.run(run())


def others_latency(place: str, dead: int, seconds: float) -> list[float]:
    """Milliseconds from enqueue to done at nine healthy destinations, while that many jobs wait for a dead tenth."""

    async def run() -> list[float]:
        ulak, took = _ulak(place), []

        @ulak.handles(KIND, concurrency=100, timeout_seconds=1, max_attempts=100, capacity=CAPACITY)
        async def send(job: Job) -> None:
            if job.payload is None:
                await asyncio.sleep(3_600)  # a connection that nobody answers
            await asyncio.sleep(0.02)
            took.append(_ms_since(job.payload))

        async with ulak:
            for _ in range(0, dead, FILL):
                await ulak.enqueue_many([NewJob(KIND, None, key="dead", slots=8)] * FILL)
            await asyncio.sleep(1)
            await _send_to_healthy(ulak, seconds)
            await asyncio.sleep(0.5)
        return took[len(took) // 10 :]

    return uvloop.run(run())


async def _send_to_healthy(ulak: Ulak, seconds: float, per_second: int = 200) -> None:
    begins = time.perf_counter()
    for turn in range(int(seconds * per_second)):
        await asyncio.sleep(begins + turn / per_second - time.perf_counter())
        await ulak.enqueue(KIND, time.perf_counter(), key=f"healthy-{turn % 9}", slots=8)


def _ulak(place: str, work: bool = True) -> Ulak:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))  # as quiet as the peers
    return Ulak(place if "://" in place else f"sqlite:///{place}", work=work)


def _handle(ulak: Ulak, finish: Callable[[], None]) -> None:
    @ulak.handles(KIND, concurrency=BATCH, capacity=CAPACITY)
    async def send(_: Job) -> None:
        finish()


async def _fill(place: str, jobs: list[NewJob]) -> None:
    ulak = _ulak(place, work=False)
    _handle(ulak, lambda: None)
    async with ulak:
        for start in range(0, len(jobs), FILL):
            await ulak.enqueue_many(jobs[start : start + FILL])


def _mixed(waiting: int) -> list[NewJob]:
    ready = NewJob(KIND, PAYLOAD)
    later = NewJob(KIND, PAYLOAD, delay_seconds=86_400)
    behind = [NewJob(KIND, PAYLOAD, key=f"key-{number}") for number in range(1_000)]
    return [(ready, later, ready, behind[index // 4 % 1_000])[index % 4] for index in range(waiting)]


def _refresh(place: str) -> None:
    if "://" in place:
        refresh_statistics(place)


def _settled(ulak: Ulak) -> float:
    return ulak.telemetry.counters[("jobs_settled", KIND, "done")]


async def _all_settled(ulak: Ulak, jobs: int) -> None:
    while _settled(ulak) < jobs:
        await asyncio.sleep(0.001)


def _ms_since(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000


def _memory() -> dict[str, float]:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(fields[field].split()[0]) / 1024 for name, field in (("now", "VmRSS"), ("peak", "VmHWM"))}
