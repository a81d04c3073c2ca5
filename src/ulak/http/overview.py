"""The overview: what the whole store does now and did in the last minutes, sampled only while somebody looks."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ulak import codec
from ulak.app import Ulak
from ulak.errors import Error
from ulak.log import get_logger
from ulak.masking import mask_text
from ulak.spine.job import JobEvent
from ulak.spine.units.sample import Sample

log = get_logger("ulak.http")

HISTORY_SECONDS = 900.0
FRAME_SECONDS = 1.0
LINGER_SECONDS = 30.0
STATES = ("ready", "running", "deferred", "behind", "suspect")
CHART_POINTS = 90
SPARK_POINTS = 30
MAX_INCIDENTS = 5
RATE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OverviewPoint:
    """Totals since the store began, and how many were in each state then."""

    at: float
    accepted: int
    done: int
    done_of: dict[str, int]
    states: dict[str, int]


class Overview:
    """One sampler and one encoded frame for all who look; a slow reader gets only the newest."""

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._points: deque[OverviewPoint] = deque()
        self._stopped: set[str] | None = None  # destinations whose breakers were open at the last look
        self._incidents: deque[dict[str, Any]] = deque(maxlen=MAX_INCIDENTS)
        self._changed = asyncio.Event()
        self._watchers = 0
        self._leaving = False
        self._wanted_until = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self.frame = b"{}"

    async def now(self) -> dict[str, Any]:
        """A look of its own; it keeps the history going for a while, for the next one."""
        self._want()
        await self._ulak.sampler.refresh()
        self._note(self._ulak.sample)
        return self._document(self._ulak.sample)

    async def frames(self) -> AsyncIterator[bytes]:
        self._watchers += 1
        self._want()
        try:
            while not self._leaving:
                await self._changed.wait()
                yield self.frame
        finally:
            self._watchers -= 1

    def leave(self) -> None:
        """Pages that look are told nothing more: a server waits for its last answers before it stops."""
        self._leaving = True
        self._changed.set()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _want(self) -> None:
        self._wanted_until = self._ulak.clock.monotonic() + LINGER_SECONDS
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="ulak-overview")

    async def _run(self) -> None:
        while self._watchers or self._ulak.clock.monotonic() < self._wanted_until:
            try:
                await self._ulak.sampler.refresh()
                self._note(self._ulak.sample)
                self.frame = codec.encode(self._document(self._ulak.sample))
            except Error as error:  # the store is closing, or does not answer
                log.info("overview_not_taken", error=str(error))
            except Exception:  # pages that look would wait for a frame for ever
                log.exception("overview_not_taken")
            self._changed.set()
            self._changed = asyncio.Event()
            await self._ulak.clock.wait(asyncio.Event(), FRAME_SECONDS)

    def _note(self, sample: Sample) -> None:
        at = sample.taken_at / 1000
        if self._points and at <= self._points[-1].at:
            return
        accepted, done = _total(sample, JobEvent.ACCEPTED), _total(sample, JobEvent.DONE)
        self._points.append(OverviewPoint(at, accepted, done, _done_of(sample), _states(sample)))
        while self._points[0].at < at - HISTORY_SECONDS:
            self._points.popleft()
        self._note_incidents(sample)

    def _note_incidents(self, sample: Sample) -> None:
        """Breakers that opened since the last look; of those that it finds open, the first look knows no moment."""
        stopped = {mask_text(one.destination) for one in sample.breakers}
        opened = sorted(stopped - self._stopped) if self._stopped is not None else []
        self._incidents += [{"at": sample.taken_at, "destination": name} for name in opened]
        self._stopped = stopped

    def _document(self, sample: Sample) -> dict[str, Any]:
        points = _thinned(list(self._points), CHART_POINTS)
        return {
            "at": sample.taken_at,
            "accounted": all(sample.difference(kind) == 0 for kind in sample.kinds()),
            "states": _states(sample),
            "oldestAt": min(sample.oldest_at.values(), default=None),
            "perSecond": {
                "accepted": self._rate(lambda point: point.accepted),
                "done": self._rate(lambda point: point.done),
            },
            "totals": {
                "accepted": _total(sample, JobEvent.ACCEPTED),
                "done": _total(sample, JobEvent.DONE),
                "dead": _total(sample, JobEvent.DEAD) - _total(sample, JobEvent.REDRIVEN),
                "held": _total(sample, JobEvent.HELD),
                "uncertain": _total(sample, JobEvent.UNCERTAIN),
                "restored": sample.held,
            },
            "rooms": {name: room | self._of_room(name) for name, room in _rooms(sample).items()},
            "pools": self._pools(sample),
            "simulated": self._ulak.channels.simulated,
            "breakers": [{"destination": mask_text(one.destination), "state": one.state} for one in sample.breakers],
            "incidents": list(self._incidents),
            "history": [
                [
                    round(after.at, 1),
                    _per_second(before, after, lambda point: point.accepted),
                    _per_second(before, after, lambda point: point.done),
                ]
                for before, after in pairwise(points)
            ],
            "sparks": {
                "accepted": _rates(self._points, lambda point: point.accepted),
                "done": _rates(self._points, lambda point: point.done),
                **{name: [one.states[name] for one in _thinned(list(self._points), SPARK_POINTS)] for name in STATES},
            },
            "reasons": [*self._ulak.bus.reasons(), *(one for room in self._ulak.rooms for one in room.reasons())],
        }

    def _rate(self, count: Callable[[OverviewPoint], int]) -> float:
        """Over the last seconds: a single second jumps about."""
        if len(self._points) < 2:
            return 0.0
        last = self._points[-1]
        first = next(point for point in self._points if point.at >= last.at - RATE_SECONDS)
        return _per_second(first if first is not last else self._points[-2], last, count)

    def _of_room(self, name: str) -> dict[str, Any]:
        def count(point: OverviewPoint) -> int:
            return point.done_of.get(name, 0)

        return {
            "perSecond": self._rate(count),
            "spark": _rates(self._points, count),
            "kinds": _kinds(self._ulak.sample, name),
        }

    def _pools(self, sample: Sample) -> list[dict[str, Any]]:
        """Bounds on active jobs that have work in them, the fullest first."""
        bound = self._ulak.store.capacity.bound
        found = [(kind, sample.active(kind), bound(kind)) for kind in sample.kinds() if sample.active(kind)]
        ordered = sorted(found, key=lambda one: -one[1] / max(one[2], 1))
        return [{"kind": kind, "active": active, "capacity": most} for kind, active, most in ordered[:8]]


def _thinned(points: list[OverviewPoint], most: int) -> list[OverviewPoint]:
    """So many at most, evenly spread, the newest among them."""
    step = max(-(-len(points) // most), 1)
    return points[::-1][::step][::-1]


def _per_second(before: OverviewPoint, after: OverviewPoint, count: Callable[[OverviewPoint], int]) -> float:
    return round((count(after) - count(before)) / max(after.at - before.at, 0.001), 2)


def _rates(points: deque[OverviewPoint], count: Callable[[OverviewPoint], int]) -> list[float]:
    return [_per_second(before, after, count) for before, after in pairwise(_thinned(list(points), SPARK_POINTS))]


def _states(sample: Sample) -> dict[str, int]:
    return {state: sum(n for (_, name), n in sample.live.items() if name == state) for state in STATES}


def _total(sample: Sample, word: str) -> int:
    return sum(number for (name, _), number in sample.tally.items() if name == word)


def _done_of(sample: Sample) -> dict[str, int]:
    return {name: room["done"] for name, room in _rooms(sample).items()}


def _rooms(sample: Sample) -> dict[str, dict[str, int]]:
    found: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"waiting": 0, "running": 0, "done": 0, "dead": 0})
    for (kind, state), number in sample.live.items():
        found[kind.partition(".")[0]]["running" if state == "running" else "waiting"] += number
    for (word, kind), number in sample.tally.items():
        room = found[kind.partition(".")[0]]
        if word in ("done", "dead"):
            room[word] += number
        elif word == "redriven":
            room["dead"] -= number
    return found


def _kinds(sample: Sample, room: str) -> dict[str, dict[str, int]]:
    """Unfinished jobs of a room by kind and state, and since or until when the first of a kind waits."""
    found: dict[str, dict[str, int]] = {}
    for (kind, state), number in sample.live.items():
        if kind.partition(".")[0] == room:
            found.setdefault(kind, {"oldestAt": sample.oldest_at[kind]})[state] = number
    return found
