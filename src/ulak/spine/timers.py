"""Timers: a timer is a job that is not yet due. This makes due jobs ready and says when to look again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

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

# Until the next look, when what is due is held by another process: that one makes it ready, or lets go of it.
HELD_MILLIS = 50


Sorts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """Places for jobs ahead of their time: how many there are of each sort, and which sorts a kind needs one of."""

    places: dict[str, int]
    needs: dict[str, Sorts]


class Look(NamedTuple):
    """When to look again, and what was made ready ahead of its time: (id, due_at, kind)."""

    again_at: int | None
    soon: list[tuple[int, int, str]]


def sorts_of(lane: str, kind: str) -> Sorts:
    return "all", f"lane {lane}", f"kind {kind}"


def spare_of(demand: Demand, held: Iterable[Sorts], expected: Iterable[Sorts] = ()) -> Spare:
    """Half of a worker's room, counting what it holds and what it is about to hold: due work finds the other half."""
    rooms = {"all": demand.room} | {f"lane {lane}": room for lane, room in demand.lanes.items()}
    needs: dict[str, Sorts] = {}
    for want in demand.wants:
        if want.rate_per_second is None:  # a rate counts starts, and is spent at the claim
            rooms[f"kind {want.kind}"] = want.room
            needs[want.kind] = sorts_of(want.lane, want.kind)
    here, coming = Counter(chain.from_iterable(held)), Counter(chain.from_iterable(expected))
    places = {sort: (room + here[sort]) // 2 - here[sort] - coming[sort] for sort, room in rooms.items()}
    return Spare(places, needs)


def promote_due(tx: Tx) -> int | None:
    """Make a slice of due jobs ready; answers when to look again, which may be in the past when more are due."""
    floor = tx.due_floor()
    due = tx.all(sql.find_due, until=tx.now, n=SLICE, floor=floor)
    _make_ready(tx, due)
    again_at = _next_due(tx, floor)
    return tx.now + HELD_MILLIS if _is_held(tx, again_at, due) else again_at


def look_ahead(tx: Tx, spare: Spare) -> Look:
    """Make a slice of due jobs ready, and where there are places to spare also what is due soon."""
    until, floor = tx.now + AHEAD_MILLIS, tx.due_floor()
    found = tx.all(sql.find_due, until=until, n=SLICE, floor=floor)
    due = [row for row in found if row[7] <= tx.now]
    soon = _due_soon(found[len(due) :], spare)
    _make_ready(tx, due + soon)
    again_at = _next_due(tx, floor)
    if _is_held(tx, again_at, due):
        again_at = tx.now + HELD_MILLIS
    elif again_at is not None and again_at > until:
        again_at -= SLACK_MILLIS
    elif again_at is not None:  # a slice was not enough, or it has to wait for its time, and others must not with it
        more = (due or soon) and len(found) == SLICE
        again_at = min(again_at, tx.now if more else until - SLACK_MILLIS)
    return Look(again_at, [(row[0], row[7], row[1]) for row in soon])


def _next_due(tx: Tx, floor: int) -> int | None:
    following = tx.one(sql.next_due, floor=floor)
    due_at = following[0] if following else None
    tx.note_next_due(due_at)
    return due_at


def _is_held(tx: Tx, next_due_at: int | None, due: list[tuple[Any, ...]]) -> bool:
    """Whether something is due that could not be had."""
    return not due and next_due_at is not None and next_due_at <= tx.now


def _due_soon(found: list[tuple[Any, ...]], spare: Spare) -> list[tuple[Any, ...]]:
    """A job with a key would keep its slot from one that is due already, and a suspect runs apart: these wait."""
    left = dict(spare.places)
    soon = []
    for row in found:
        needs = spare.needs.get(row[1]) if row[2] is None and not row[6] else None
        if needs is not None and min(left[sort] for sort in needs) > 0:
            left.update({sort: left[sort] - 1 for sort in needs})
            soon.append(row)
    return soon


def _make_ready(tx: Tx, due: list[tuple[Any, ...]]) -> None:
    free = [row for row in due if row[2] is None or row[4] is not None]
    if free:
        tx.run(sql.ready_jobs, ids=[row[0] for row in free])
        for identifier, kind, _, _, _, prio, crashes, _ in free:
            tx.wake(kind, SUSPECT_LEVEL if crashes else prio, identifier)
    joining = [(row[0], row[2], row[3], row[1], row[5]) for row in due if row[2] is not None and row[4] is None]
    if joining:
        place_due(tx, joining)


PROMOTE_DUE: Verb[None, int | None] = Verb(Line.TIMERS, lambda tx, items: [promote_due(tx)] * len(items))
LOOK_AHEAD: Verb[Spare, Look] = Verb(Line.TIMERS, lambda tx, items: [look_ahead(tx, spare) for spare in items])
