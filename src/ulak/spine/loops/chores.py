"""Chores: functions that a room repeats while its store is open. One that fails is logged and tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ulak.clock import Clock
from ulak.errors import Error
from ulak.log import get_logger

log = get_logger("ulak.chores")


class Chores:
    def __init__(self, room: str) -> None:
        self._room = room
        self._tasks: list[asyncio.Task[None]] = []

    def begin(
        self, clock: Clock, name: str, seconds: float, work: Callable[[], Awaitable[object]], rest: float = 0.0
    ) -> None:
        """Run it every `seconds`, and pause for at least `rest` times as long as it took."""
        run = self._run(clock, name, seconds, work, rest)
        self._tasks.append(asyncio.create_task(run, name=f"ulak-{self._room}-{name}"))

    async def end(self) -> bool:
        """Stop them all; returns whether there were any."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return bool(tasks)

    async def _run(
        self, clock: Clock, name: str, seconds: float, work: Callable[[], Awaitable[object]], rest: float
    ) -> None:
        pause = seconds
        while True:
            await clock.wait(asyncio.Event(), pause)
            began = clock.monotonic()
            try:
                await work()
            except Error as error:
                log.warning("chore_failed", room=self._room, chore=name, error=str(error))
            except Exception:
                log.exception("chore_failed", room=self._room, chore=name)
            pause = max(seconds, rest * (clock.monotonic() - began))
