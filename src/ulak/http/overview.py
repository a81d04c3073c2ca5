"""The overview: what the whole store does now and did in the last minutes, sampled only while somebody looks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import structlog

from ulak import codec
from ulak.app import Ulak
from ulak.errors import Error
from ulak.masking import mask_text
from ulak.spine.job import JobEvent
from ulak.spine.units.sample import Sample

log = structlog.get_logger("ulak.http")

HISTORY_SECONDS = 900.0
FRAME_SECONDS = 1.0
LINGER_SECONDS = 30.0
STATES = ("ready", "running", "deferred", "behind", "suspect")


class Overview:
    """One sampler and one encoded frame for all who look; a slow reader gets only the newest."""

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._points: deque[tuple[float, int, int, int]] = deque()  # when, accepted, ended, done so far
        self._changed = asyncio.Event()
        self._watchers = 0
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
            while True:
                await self._changed.wait()
                yield self.frame
        finally:
            self._watchers -= 1

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
            self._changed.set()
            self._changed = asyncio.Event()
            await self._ulak.clock.wait(asyncio.Event(), FRAME_SECONDS)

    def _note(self, sample: Sample) -> None:
        at = sample.taken_at / 1000
        if self._points and at <= self._points[-1][0]:
            return
        done = _total(sample, JobEvent.DONE)
        ended = done + sum(_total(sample, word) for word in (JobEvent.CANCELLED, JobEvent.EXPIRED, JobEvent.DEAD))
        self._points.append((at, _total(sample, JobEvent.ACCEPTED), ended, done))
        while self._points[0][0] < at - HISTORY_SECONDS:
            self._points.popleft()

    def _document(self, sample: Sample) -> dict[str, Any]:
        states = {state: sum(n for (_, name), n in sample.live.items() if name == state) for state in STATES}
        kinds = sample.kinds()
        return {
            "at": sample.taken_at,
            "accounted": all(sample.difference(kind) == 0 for kind in kinds),
            "states": states,
            "oldestAt": min(sample.oldest_at.values(), default=None),
            "perSecond": self._rates(),
            "totals": {
                "accepted": _total(sample, JobEvent.ACCEPTED),
                "done": _total(sample, JobEvent.DONE),
                "dead": _total(sample, JobEvent.DEAD) - _total(sample, JobEvent.REDRIVEN),
                "held": _total(sample, JobEvent.HELD),
                "uncertain": _total(sample, JobEvent.UNCERTAIN),
            },
            "rooms": _rooms(sample),
            "pools": self._pools(sample),
            "breakers": [{"destination": mask_text(one.destination), "state": one.state} for one in sample.breakers],
            "history": self._history(),
            "reasons": [reason for room in self._ulak.rooms for reason in room.reasons()],
        }

    def _rates(self) -> dict[str, float]:
        if len(self._points) < 2:
            return {"accepted": 0.0, "done": 0.0}
        (before, accepted, _, done), (at, more, _, more_done) = (
            self._points[max(len(self._points) - 6, 0)],
            self._points[-1],
        )
        seconds = max(at - before, 0.001)
        return {"accepted": round((more - accepted) / seconds, 2), "done": round((more_done - done) / seconds, 2)}

    def _history(self) -> list[list[float]]:
        """[when, accepted and done per second since the point before]."""
        points = list(self._points)
        return [
            [round(at, 1), round((a - a0) / max(at - t0, 0.001), 2), round((d - d0) / max(at - t0, 0.001), 2)]
            for (t0, a0, _, d0), (at, a, _, d) in pairwise(points)
        ]

    def _pools(self, sample: Sample) -> list[dict[str, Any]]:
        """Bounds on active jobs that have work in them, the fullest first."""
        bound = self._ulak.store.capacity.bound
        found = [(kind, sample.active(kind), bound(kind)) for kind in sample.kinds() if sample.active(kind)]
        ordered = sorted(found, key=lambda one: -one[1] / max(one[2], 1))
        return [{"kind": kind, "active": active, "capacity": most} for kind, active, most in ordered[:8]]


def _total(sample: Sample, word: str) -> int:
    return sum(number for (name, _), number in sample.tally.items() if name == word)


def _rooms(sample: Sample) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (kind, state), number in sample.live.items():
        room = found.setdefault(kind.partition(".")[0], {"waiting": 0, "running": 0, "done": 0, "dead": 0})
        room["running" if state == "running" else "waiting"] += number
    for (word, kind), number in sample.tally.items():
        room = found.setdefault(kind.partition(".")[0], {"waiting": 0, "running": 0, "done": 0, "dead": 0})
        if word in ("done", "dead"):
            room[word] += number
        elif word == "redriven":
            room["dead"] -= number
    return found
