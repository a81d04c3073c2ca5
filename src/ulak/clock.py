"""The only place where Python asks for the time. Inside, instants are whole milliseconds since 1970, UTC."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from ulak.errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Beyond these there is no datetime in UTC; in another time zone there can be.
_FIRST, _LAST = ((end.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND for end in (datetime.min, datetime.max))


def to_datetime(millis: int) -> datetime:
    return _EPOCH + millis * _MILLISECOND


def maybe_datetime(millis: int | None) -> datetime | None:
    return None if millis is None else to_datetime(millis)


def to_millis(instant: datetime) -> int:
    """The first whole millisecond that is not before the instant: nothing starts too early by a fraction of one."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no time zone; give an aware datetime, e.g. with tzinfo=UTC")
    return min(max(-((_EPOCH - instant) // _MILLISECOND), _FIRST), _LAST)


def given_millis(name: str, instant: datetime) -> int:
    """An instant from a caller; the refusal names the parameter that is not an instant or has no time zone."""
    if not isinstance(instant, datetime):
        raise Invalid(
            f"{name}: {instant!r:.50} is not a datetime; give an aware one",
            fields=[(name, "must be an aware datetime")],
        )
    try:
        return to_millis(instant)
    except ValueError as error:
        raise Invalid(f"{name}: {error}", fields=[(name, "needs a time zone")]) from error


class Clock(Protocol):
    def now(self) -> int:
        """Wall clock in milliseconds."""

    def monotonic(self) -> float:
        """Seconds that never run backwards; only differences mean anything."""

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        """Wait until the event is set or the time has passed; True when the event was set."""


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set():
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()


class SteadyClock:
    """A wall clock that never goes back: after a step back it runs at half its pace until the wall has caught up.

    Deadlines then neither fire at once nor stand still for as long as the step was. A step forward is followed at once.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._at = 0.0
        self._asked: float | None = None  # when it was last asked while the wall is behind; None while it is not
        # The bound methods themselves: they are asked several times for every job.
        self.monotonic = clock.monotonic
        self.wall = clock.now  # steps and all

    def now(self) -> int:
        wall = self.wall()
        # Without the lock: at worst another thread's later reading of the wall is replaced by this one.
        if self._asked is None and wall >= self._at:
            self._at = wall
            return wall
        with self._lock:
            return self._catch_up(wall)

    def _catch_up(self, wall: int) -> int:
        monotonic = self.monotonic()
        passed = 0.0 if self._asked is None else max(monotonic - self._asked, 0.0) * 1000
        own = self._at + passed / 2
        self._at, self._asked = (wall, None) if wall >= own else (own, monotonic)
        return int(self._at)

    def not_before(self, instant: int) -> None:
        """Time that was stored already is over."""
        with self._lock:
            self._at = max(self._at, float(instant))

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        return await self._clock.wait(event, seconds)


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, start_at: datetime = datetime(2027, 1, 15, 8, tzinfo=UTC)) -> None:
        self._now = given_millis("start_at", start_at)
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set() or (seconds is not None and seconds <= 0):
            await asyncio.sleep(0)
            return event.is_set()
        if seconds is None:
            await event.wait()
            return True
        over = asyncio.Event()
        sleeper = (self._monotonic + seconds, over)
        self._sleepers.append(sleeper)
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sleepers.remove(sleeper)
            for waiting in waits:
                waiting.cancel()
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move and sleepers that are due wake up."""
        self._now += round(seconds * 1000)
        self._monotonic += seconds
        for due, over in self._sleepers:
            if due <= self._monotonic:
                over.set()

    def step(self, seconds: float) -> None:
        """Step the wall clock alone, as an administrator or NTP would."""
        self._now += round(seconds * 1000)
