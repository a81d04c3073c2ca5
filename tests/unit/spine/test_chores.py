"""Chores are done again and again, a failed one too, and end when they are told to."""

from __future__ import annotations

import asyncio

import pytest

from ulak.clock import ManualClock
from ulak.errors import Unavailable
from ulak.spine.loops.chores import Chores


class Work:
    """Fails the first time, and takes as long as it is told."""

    def __init__(self, clock: ManualClock, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.clock, self.seconds, self.times = clock, seconds, 0
        self.error = error or Unavailable("not now")

    async def __call__(self) -> None:
        self.times += 1
        self.clock.advance(self.seconds)
        if self.times == 1:
            raise self.error


async def passes(clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("error", [Unavailable("not now"), ValueError("nobody thought of it")], ids=repr)
async def test_a_chore_that_fails_is_done_again_until_it_is_ended(clock, error):
    chores, work = Chores("shop"), Work(clock, error=error)
    chores.begin(clock, "count", 5, work)
    await passes(clock, 0)
    for times in (1, 2, 3):
        await passes(clock, 5)
        assert work.times == times
    assert await chores.end()
    await passes(clock, 50)
    assert work.times == 3
    assert not await chores.end()


async def test_a_chore_that_takes_long_pauses_longer(clock):
    chores, work = Chores("shop"), Work(clock, seconds=2)
    chores.begin(clock, "count", 5, work, rest=10)
    await passes(clock, 0)
    await passes(clock, 5)
    await passes(clock, 19)
    assert work.times == 1
    await passes(clock, 1)
    assert work.times == 2
    await chores.end()
