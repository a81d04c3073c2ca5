"""`ulak dispatch demo`: a town in memory, on a clock that runs as fast as you like, told line by line."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import typer

from ulak.app import Ulak
from ulak.cli import logs
from ulak.clock import SystemClock, to_datetime, to_millis
from ulak.dispatch.simulate import ANSWER_SECONDS, CENTRE
from ulak.errors import Conflict
from ulak.settings import Log, Settings

TICK_SECONDS = 15.0
_TASK_EVERY = 180.0
_NAMES = ("Ahmet", "Berat", "Can", "Deniz", "Elif", "Fatma", "Gül", "Hakan", "İpek", "Kaan", "Leyla", "Murat")
_STEP = 0.0003
_WORDS = {
    "dispatch.task.opened": "somebody asks for help",
    "dispatch.offer.opened": "{helper} is asked",
    "dispatch.offer.accepted": "{helper} accepts",
    "dispatch.offer.rejected": "{helper} refuses",
    "dispatch.offer.expired": "{helper} has not answered in time",
    "dispatch.task.completed": "{helper} is back",
    "dispatch.task.timed_out": "nobody is left to ask",
}


class FastClock:
    """A clock that runs this many times as fast as ours. Work is still measured in our own seconds."""

    def __init__(self, start_at: datetime, speed: float) -> None:
        self._clock = SystemClock()
        self._speed = speed
        self._start = to_millis(start_at)
        self._began = self._clock.monotonic()
        self.monotonic = self._clock.monotonic

    def now(self) -> int:
        return self._start + round((self.monotonic() - self._began) * self._speed * 1000)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        return await self._clock.wait(event, None if seconds is None else seconds / self._speed)


async def run_town(helpers: int, speed: float, minutes: float, seed: int) -> None:
    clock = FastClock(datetime(2027, 1, 4, 9, tzinfo=UTC), speed)
    logs.set_up(Log(level="error"))  # the clock's leaps and the jobs that a memory store drops are meant here
    settings = Settings(store="memory:", dispatch={"deadline_seconds": 300, "radius_meters": 1500})
    async with Ulak("memory:", settings=settings, clock=clock) as ulak:
        town = _Town(ulak, random.Random(seed))
        await town.settle(helpers)
        for _ in range(round(minutes * 60 / TICK_SECONDS)):
            await clock.wait(asyncio.Event(), TICK_SECONDS)
            await town.tick()
        figures = await ulak.dispatch.fairness()
        typer.echo(
            f"\ngini {figures.gini:.2f}, accepted {figures.acceptance_rate or 0:.0%}, "
            f"half assigned within {figures.assign_p50_seconds or 0:.0f} s"
        )


class _Town:
    """People who walk about, and answer or not."""

    def __init__(self, ulak: Ulak, chance: random.Random) -> None:
        self._ulak = ulak
        self._chance = chance
        self._spots: dict[str, tuple[float, float]] = {}
        self._silent: set[str] = set()
        self._busy: dict[str, int] = {}
        self._seen = 0

    async def settle(self, number: int) -> None:
        for index in range(number):
            name = _NAMES[index % len(_NAMES)] + (str(index // len(_NAMES) + 1) if index >= len(_NAMES) else "")
            helper = f"h{index}"
            self._spots[helper] = tuple(one + self._chance.gauss(0, 0.005) for one in CENTRE)  # type: ignore[assignment]
            latitude, longitude = self._spots[helper]
            await self._ulak.dispatch.put_helper(helper, {"name": name, "latitude": latitude, "longitude": longitude})
            if self._chance.random() < 0.25:
                self._silent.add(helper)

    async def tick(self) -> None:
        await self._walk()
        await self._answer()
        await self._finish()
        if self._chance.random() < TICK_SECONDS / _TASK_EVERY:
            latitude, longitude = (one + self._chance.gauss(0, 0.003) for one in CENTRE)
            await self._ulak.dispatch.open(
                {"requesterId": "ayse", "category": "market", "latitude": latitude, "longitude": longitude}
            )
        await self._tell()

    async def _walk(self) -> None:
        for helper, (latitude, longitude) in self._spots.items():
            there = latitude + self._chance.uniform(-_STEP, _STEP), longitude + self._chance.uniform(-_STEP, _STEP)
            self._spots[helper] = there
            await self._ulak.dispatch.move(helper, *there)

    async def _answer(self) -> None:
        for view in await self._ulak.dispatch.tasks(status="OFFERED", limit=100):
            for pending in view.pending:
                if pending.helper in self._silent or self._chance.random() > TICK_SECONDS / ANSWER_SECONDS:
                    continue
                try:
                    if self._chance.random() < 0.5:
                        await self._ulak.dispatch.accept(view.task.id, pending.helper)
                        self._busy[pending.helper] = view.task.id
                    else:
                        await self._ulak.dispatch.reject(view.task.id, pending.helper)
                except Conflict:
                    continue

    async def _finish(self) -> None:
        for helper, task in list(self._busy.items()):
            if self._chance.random() < TICK_SECONDS / 600:
                await self._ulak.dispatch.complete(task, helper)
                del self._busy[helper]

    async def _tell(self) -> None:
        for event in await self._ulak.jobs.events(after=self._seen, limit=1000):
            self._seen = event.seq
            if event.name in _WORDS:
                name = (event.data or {}).get("helper", "")
                at = to_datetime(round(event.at.timestamp() * 1000))
                typer.echo(f"{at:%H:%M:%S}  {_WORDS[event.name].format(helper=name)}")
