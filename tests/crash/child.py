"""A process that is made to be killed: it enqueues, works, and tells the parent of every acceptance and every run."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import signal
import time
from typing import Any

import structlog

from tests.crash.wire import RETRIED, WORKED, Accepted, Began, Ended, Failed, Finished, Life, Mouth, Ready, Refused
from ulak import Backoff, Done, Error, Job, NewJob, Retry, Ulak, Unavailable
from ulak.settings import load
from ulak.spine import probe

KINDS = ("plain", "plain", "plain", "thread", "keyed", "late", "flaky", "bulkhead", "bulkhead", "chained")
DESTINATION_SLOTS = 3
SETTINGS = {
    "spine.ballast_mb": 0, "spine.min_free_mb": 0, "spine.lease_seconds": 1, "spine.poison_deaths": 100,
    "worker.concurrency": 40, "worker.threads": 4, "worker.stop_grace_seconds": 5, "worker.stop_cancel_seconds": 2,
}  # fmt: skip
TOKENS_PER_LIFE = 1_000_000
POLL_SECONDS = 0.02
EXIT_OF_POISON = 70


def live(life: Life, descriptor: int) -> None:
    """The whole life, in a process that was forked for it."""
    mouth = Mouth(descriptor)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if life.point is not None:
        probe.listen(life.point, _suicide(life.reach))
    try:
        asyncio.run(Child(life, mouth).run())
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent has to know
        mouth.say(Failed(f"{type(error).__name__}: {error}"[:2000]))


def _suicide(reach: int) -> Any:
    count = itertools.count(1)

    def listener() -> None:
        if next(count) == reach:
            os.kill(os.getpid(), signal.SIGKILL)

    return listener


class Child:
    def __init__(self, life: Life, mouth: Mouth) -> None:
        self._life = life
        self._mouth = mouth
        self._random = random.Random(life.seed * 1_000_003 + life.number)
        self._tokens = itertools.count(life.number * TOKENS_PER_LIFE)
        self._accepted = 0
        self._enough = asyncio.Event()
        self._ulak = Ulak(
            settings=load(env={}, overrides={"store": life.address, **SETTINGS, **life.settings}).settings
        )
        self._declare()

    # The handlers. Each says that it begins, works for some milliseconds, says that it ends, and answers its epoch.

    def _declare(self) -> None:
        ulak = self._ulak
        for kind in ("plain", "keyed", "late", "chained", "after", "tick"):
            ulak.handles(kind)(self._work)
        for kind in ("flaky", "bulkhead"):
            ulak.handles(kind, backoff=Backoff(0.01, 1.0, 0.02, 0.0))(self._fail_first)
        ulak.handles("thread", lane="thread")(self._work_in_thread)
        ulak.handles("stuck")(self._hang_first)
        ulak.handles("poison")(self._die)
        ulak.cron("tick", "* * * * *", "tick")

    async def _work(self, job: Job) -> Done:
        self._began(job)
        await asyncio.sleep(self._random.uniform(0.001, 0.006))
        return self._ended(job)

    def _work_in_thread(self, job: Job) -> Done:
        self._began(job)
        time.sleep(0.002)
        return self._ended(job)

    async def _fail_first(self, job: Job) -> Done | Retry:
        self._began(job)
        await asyncio.sleep(0.001)
        if job.attempt > 1:
            return self._ended(job)
        self._mouth.say(Ended(job.id, job.epoch, RETRIED))
        return Retry()

    async def _hang_first(self, job: Job) -> Done:
        """Runs until its process is killed; the run that knows of that ends."""
        self._began(job)
        if not job.uncertain:
            await asyncio.Event().wait()
        return self._ended(job)

    async def _die(self, job: Job) -> None:
        self._began(job)
        os._exit(EXIT_OF_POISON)

    def _began(self, job: Job) -> None:
        now = time.monotonic_ns()
        self._mouth.say(Began(job.id, job.kind, job.key, job.epoch, job.attempt, job.crashes, os.getpid(), now))

    def _ended(self, job: Job) -> Done:
        self._mouth.say(Ended(job.id, job.epoch, WORKED))
        return Done({"epoch": job.epoch})

    # The life

    async def run(self) -> None:
        async with self._ulak:
            self._mouth.say(Ready(os.getpid()))
            producers = [asyncio.create_task(self._produce(number)) for number in range(self._life.producers)]
            await asyncio.gather(*(self._enqueue_all(kind, number) for kind, number in self._life.jobs))
            await {"drained": self._drained, "stopped": self._enough.wait, "killed": self._for_ever}[self._life.until]()
            for producer in producers:
                producer.cancel()
        report = self._ulak.stop_report
        self._mouth.say(Finished([] if report is None else list(report.left)))

    async def _for_ever(self) -> None:
        await asyncio.Event().wait()

    async def _drained(self) -> None:
        while await self._ulak.jobs.counts():
            await asyncio.sleep(POLL_SECONDS)

    async def _enqueue_all(self, kind: str, number: int) -> None:
        for _ in range(number):
            await self._enqueue([self._new(kind, 0)])

    async def _produce(self, number: int) -> None:
        while True:
            size = 5 if self._random.random() < 0.1 else 1
            await self._enqueue([self._new(self._random.choice(KINDS), number) for _ in range(size)])

    def _new(self, kind: str, producer: int) -> NewJob:
        token = next(self._tokens)
        payload = {"token": token, "text": "x" * self._life.payload_bytes}
        # One producer per key: then the order of its ids is the order in which it asked.
        key = f"{self._life.number}.{producer}.{token % 2}" if kind == "keyed" else None
        slots = 1
        if kind == "bulkhead":  # shared by all lives: slots that are given on while one pauses, and lines behind them
            key, slots = f"shop{token % 2}", DESTINATION_SLOTS
        delay = self._random.uniform(0.005, 0.3) if kind == "late" else None
        after = "after" if kind == "chained" else None
        return NewJob(kind, payload, key=key, slots=slots, delay_seconds=delay, continuation=after)

    async def _enqueue(self, jobs: list[NewJob]) -> None:
        tokens = [job.payload["token"] for job in jobs]
        try:
            ids = await self._ulak.enqueue_many(jobs)
        except Error as error:
            self._mouth.say(Refused(tokens, error.outcome if isinstance(error, Unavailable) else "no"))
            await asyncio.sleep(POLL_SECONDS)
            return
        self._mouth.say(Accepted(ids, tokens))
        self._accepted += len(ids)
        if self._accepted >= self._life.accept_before_stop:
            self._enough.set()
