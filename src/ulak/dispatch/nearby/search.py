"""Helpers near a task, ranked: one read beside the writer, in the circle's ranges of cells, by exact distance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import msgspec

from ulak import codec
from ulak.clock import SystemClock
from ulak.dispatch.model import Candidate, Excluded, HelpTask, SearchResult
from ulak.dispatch.nearby.eligible import rank
from ulak.dispatch.nearby.geo import Point, chord_of, point_at, ranges_around
from ulak.dispatch.policy import Policy
from ulak.dispatch.world import place_of
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries("ulak.dispatch")

MAX_SHOWN = 50
MAX_READS = 2
MAX_TOGETHER = 64
READ_SECONDS = 0.25  # after which a read begins no further search

_RANKED, _COUNTED, _LEFT_OUT = range(3)


class FoundRow(msgspec.Struct, array_like=True, gc=False):
    """A row of search_circle.sql."""

    part: int
    id: int
    helper: str
    chord: int
    load: int
    completed: int
    timeouts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Circle:
    centre: Point
    radius: float
    skills: tuple[str, ...] = ()
    asked: Collection[int] = ()


def search(tx: Tx, circle: Circle, policy: Policy, limit: int | None = None) -> SearchResult:
    ranges = ranges_around(circle.centre, circle.radius)
    found = tx.rows_as(
        sql.search_circle,
        FoundRow,
        ranges=[list(one) for one in ranges],
        low=[one.low for one in ranges],
        high=[one.high for one in ranges],
        x=circle.centre.x,
        y=circle.centre.y,
        z=circle.centre.z,
        chord=chord_of(circle.radius),
        month=policy.month(tx.now),
        weight=policy.expiry_weight,
        pause_after=policy.pause_after,
        fresh_from=tx.now - policy.position_millis,
        skills=[codec.encode_text(one) for one in circle.skills],
        asked=sorted(circle.asked),
        n=policy.max_candidates if limit is None else limit,
        shown=MAX_SHOWN,
    )
    ranked = [
        Candidate(one.id, one.helper, one.chord, one.load, one.completed, one.timeouts)
        for one in found
        if one.part == _RANKED
    ]
    left_out = sorted((one for one in found if one.part == _LEFT_OUT), key=lambda one: (one.chord, one.helper))
    return SearchResult(
        tx.now,
        circle.radius,
        tuple(sorted(ranked, key=rank)),
        tuple(Excluded(one.helper, one.reason) for one in left_out),
        {one.reason: one.load for one in found if one.part == _COUNTED},
    )


def keep_plan(tx: Tx) -> None:
    """The searches of this read are planned once and for all, where a store plans."""
    if tx.multi_process:
        tx.rows(sql.keep_plan)


def circle_of(task: HelpTask, policy: Policy, asked: Collection[int] = ()) -> Circle:
    """Return the circle of a task's next search: each may be wider than the one before."""
    return Circle(point_at(*place_of(task)), policy.radius_of(task.radius, task.searches), task.skills, asked)


def search_all(tx: Tx, tasks: Sequence[HelpTask], policy: Policy) -> list[SearchResult]:
    """The next search of the first tasks, as many as there is time for; others wait for this reader too.

    A new task has asked nobody yet, and nobody is asked twice.
    """
    found: list[SearchResult] = []
    ends_at = SystemClock.monotonic() + READ_SECONDS
    keep_plan(tx)
    for task in tasks:
        if found and SystemClock.monotonic() > ends_at:
            break
        asked = {helper for (helper,) in tx.rows(sql.list_asked, task=task.id)} if task.searches else ()
        found.append(search(tx, circle_of(task, policy, asked), policy))
    return found


class Searches:
    """Searches of many callers, a few reads at a time: those that come while one is under way share the next."""

    def __init__(self, open_store: Callable[[], Store], policy: Policy) -> None:
        self._store = open_store
        self._policy = policy
        self._waiting: list[tuple[HelpTask, asyncio.Future[SearchResult]]] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def find(self, task: HelpTask) -> SearchResult:
        future: asyncio.Future[SearchResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if len(self._reading) < MAX_READS:
            self._reading.add(asyncio.create_task(self._drain(), name="ulak-dispatch-search"))
        return await future

    async def _drain(self) -> None:
        """Read until nothing waits.

        It leaves `_reading` itself: a done callback runs later, and a search that came in between would find no reader.
        """
        reading = asyncio.current_task()
        assert reading is not None
        try:
            while self._waiting:
                await self._read()
        finally:
            self._reading.discard(reading)

    async def _read(self) -> None:
        taken, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
        try:
            found = await self._store().read(search_all, [task for task, _ in taken], self._policy)
        except Exception as error:  # noqa: BLE001 - each caller is told what went wrong
            for _, future in taken:
                if not future.done():
                    future.set_exception(error)
            return
        self._waiting[:0] = taken[len(found) :]
        for (_, future), result in zip(taken, found, strict=False):
            if not future.done():
                future.set_result(result)
