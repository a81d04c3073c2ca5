"""The same work for every side: payload, producers that wait for their answer, percentiles."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

SEED = 20240229
PAYLOAD = {
    "to": "someone@example.org",
    "text": "".join(random.Random(SEED).choices("abcdefghijklmnopqrstuvwxyz ", k=160)),
}  # about 200 bytes of JSON
WARMUP_SECONDS = 0.3
CLAIMED = 100  # jobs that one measured claim takes
CLAIMS_PER_SECOND = 40  # then a pause, so that a neighbour who is busy for a second does not meet all of them


async def flood(enqueue: Callable[[], Awaitable[object]], producers: int, seconds: float) -> float:
    """Accepted per second: each producer awaits the durable answer, then asks again at once."""
    finished = 0
    begins = time.perf_counter() + WARMUP_SECONDS
    ends = begins + seconds

    async def produce() -> None:
        nonlocal finished
        while (now := time.perf_counter()) < ends:
            await enqueue()
            finished += begins <= now

    await asyncio.gather(*(produce() for _ in range(producers)))
    return finished / (time.perf_counter() - begins)


def flood_from_threads(enqueue: Callable[[], object], producers: int, seconds: float) -> float:
    """The same as flood for a side that has no asynchronous form."""
    begins = time.perf_counter() + WARMUP_SECONDS
    ends = begins + seconds
    finished = [0] * producers

    def produce(index: int) -> None:
        while (now := time.perf_counter()) < ends:
            enqueue()
            finished[index] += begins <= now

    run_threads(produce, producers)
    return sum(finished) / (time.perf_counter() - begins)


async def produce_jobs(
    enqueue: Callable[[], Awaitable[object]], producers: int, jobs: int, halfway: Callable[[], object] = lambda: None
) -> None:
    """Enqueue that many jobs from producers that each await their answer; halfway() runs beside them on a thread."""
    turns = iter(range(jobs))
    beside: list[asyncio.Task[object]] = []

    async def produce() -> None:
        for turn in turns:
            if turn == jobs // 2:
                beside.append(asyncio.create_task(asyncio.to_thread(halfway)))
            await enqueue()

    await asyncio.gather(*(produce() for _ in range(producers)))
    await asyncio.gather(*beside)


def produce_jobs_from_threads(enqueue: Callable[[], object], producers: int, jobs: int) -> None:
    """The same as produce_jobs for a side that has no asynchronous form."""
    turns = iter(range(jobs))  # next() of a range is atomic under the GIL

    def produce(_: int) -> None:
        for _ in turns:
            enqueue()

    run_threads(produce, producers)


def run_threads(work: Callable[[int], None], count: int) -> None:
    """Run work(index) on that many threads and wait for all."""
    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Countdown:
    """Counts finished jobs on one event loop and says when the last one is done."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


def spread(claims: int) -> Iterator[int]:
    """Count claims up, with a pause of a second before each group of them."""
    for number in range(claims):
        if number % CLAIMS_PER_SECOND == 0:
            time.sleep(1)
        yield number


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
