"""Timers: a timer is a job that is not yet due. This makes due jobs ready and says when to look again."""

from __future__ import annotations

from typing import Any

from ulak.spine.claim import Demand
from ulak.spine.job import SUSPECT_LEVEL
from ulak.spine.query import Queries
from ulak.spine.slots import place_due
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

# A slice keeps a storm of due timers from holding up everybody else's commit.
SLICE = 200

# Jobs are made ready so long before they are due, and the worker that claims them holds them until then: the start of a
# timer waits for no commit. The next look is when the next one is as near as a slow commit takes; what lies between the
# two is how often there is one.
AHEAD_MILLIS = 50
SLACK_MILLIS = 40


class Spare:
    """How many jobs may be taken ahead of their time: half of the room, so that work which is due finds some."""

    def __init__(self, demand: Demand) -> None:
        # A rate counts starts, so such a kind is not claimed before it may start.
        wants = [want for want in demand.wants if want.rate_per_second is None]
        self._lane_of = {want.kind: want.lane for want in wants}
        self._kinds = {want.kind: want.room // 2 for want in wants}
        self._lanes = {lane: room // 2 for lane, room in demand.lanes.items()}
        self._room = demand.room // 2

    def take(self, kind: str) -> bool:
        lane = self._lane_of.get(kind)
        if lane is None or min(self._room, self._kinds[kind], self._lanes[lane]) <= 0:
            return False
        self._room -= 1
        self._kinds[kind] -= 1
        self._lanes[lane] -= 1
        return True


def promote_due(tx: Tx, demand: Demand | None = None) -> int | None:
    """Make a slice of due jobs ready, and with room for them also what is due soon; answers when to look again.

    That may be in the past when more are due. Without room it is the next deadline.
    """
    ahead, slack = (0, 0) if demand is None else (AHEAD_MILLIS, SLACK_MILLIS)
    until = tx.now + ahead
    found = tx.all(sql.find_due, until=until, n=SLICE)
    due = [row for row in found if row[7] <= tx.now]
    if demand is not None:
        due += _due_soon(found[len(due) :], Spare(demand))
    _make_ready(tx, due)
    following: tuple[int] | None = tx.one(sql.next_due)
    if following is None:
        return None
    if following[0] > until:
        return following[0] - slack
    more = due and len(found) == SLICE
    return min(following[0], tx.now if more else until - slack)


def _due_soon(found: list[tuple[Any, ...]], spare: Spare) -> list[tuple[Any, ...]]:
    """A job with a key would keep its slot from one that is due already, and a suspect runs apart: these wait."""
    return [row for row in found if row[2] is None and not row[6] and spare.take(row[1])]


def _make_ready(tx: Tx, due: list[tuple[Any, ...]]) -> None:
    free = [row for row in due if row[2] is None or row[4] is not None]
    if free:
        tx.run(sql.ready_jobs, ids=[row[0] for row in free])
        for identifier, kind, _, _, _, prio, crashes, _ in free:
            tx.wake(kind, SUSPECT_LEVEL if crashes else prio, identifier)
    joining = [(row[0], row[2], row[3], row[1], row[5]) for row in due if row[2] is not None and row[4] is None]
    if joining:
        place_due(tx, joining)


PROMOTE_DUE: Verb[Demand | None, int | None] = Verb(
    Line.TIMERS, lambda tx, items: [promote_due(tx, items[0])] * len(items)
)
