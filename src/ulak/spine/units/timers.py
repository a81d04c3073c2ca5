"""Timers: a timer is a job that is not yet due. This makes due jobs ready and says when to look again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.claim import Demand
from ulak.spine.units.slots import Due, place_due

sql = Queries("ulak.spine")

# A slice keeps a storm of due timers from holding up everybody else's commit.
SLICE = 200

# Jobs are made ready this long before they are due, and their worker holds them until then: the start of a
# timer waits for no commit. The next look is when the next one is as near as a slow commit takes; what lies between the
# two is how often there is one.
AHEAD_MILLIS = 50
SLACK_MILLIS = 40

# Until the next look if due jobs are locked by another process: it makes them ready, or lets them go.
HELD_MILLIS = 50


Limits = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldBudget:
    """Places for jobs ahead of their time: how many each limit leaves, and which limits a kind is under."""

    places: dict[str, int]
    needs: dict[str, Limits]


class Look(NamedTuple):
    """When to look again, and the jobs made ready early: (id, due_at, kind)."""

    again_at: int | None
    soon: list[tuple[int, int, str]]


def limits_of(lane: str, kind: str) -> Limits:
    return "all", f"lane {lane}", f"kind {kind}"


def budget_of(demand: Demand, held: Iterable[Limits], expected: Iterable[Limits] = ()) -> HoldBudget:
    """Return half of a worker's capacity, less the jobs that it holds or soon will; the rest is for due work."""
    frees = {"all": demand.free} | {f"lane {lane}": free for lane, free in demand.lanes.items()}
    needs: dict[str, Limits] = {}
    for want in demand.wants:
        if want.rate_per_second is None:  # a rate counts starts, and is spent at the claim
            frees[f"kind {want.kind}"] = want.free
            needs[want.kind] = limits_of(want.lane, want.kind)
    here, coming = Counter(chain.from_iterable(held)), Counter(chain.from_iterable(expected))
    places = {limit: (free + here[limit]) // 2 - here[limit] - coming[limit] for limit, free in frees.items()}
    return HoldBudget(places, needs)


def promote_due(tx: Tx) -> int | None:
    """Make a slice of due jobs ready; return when to look again, which may be in the past when more are due."""
    floor = tx.due_floor()
    due = _find_due(tx, tx.now, floor)
    _make_ready(tx, due)
    again_at = _next_due(tx, floor)
    return tx.now + HELD_MILLIS if _is_held(tx, again_at, due) else again_at


def look_ahead(tx: Tx, budget: HoldBudget) -> Look:
    """Make a slice of due jobs ready and, as far as the budget goes, jobs that are due soon."""
    until, floor = tx.now + AHEAD_MILLIS, tx.due_floor()
    found = _find_due(tx, until, floor)
    due = [one for one in found if one.due_at <= tx.now]
    soon = _due_soon(found[len(due) :], budget)
    _make_ready(tx, due + soon)
    again_at = _next_due(tx, floor)
    if _is_held(tx, again_at, due):
        again_at = tx.now + HELD_MILLIS
    elif again_at is not None and again_at > until:
        again_at -= SLACK_MILLIS
    elif again_at is not None:  # a slice was not enough, or it has to wait for its time, and others must not with it
        more = (due or soon) and len(found) == SLICE
        again_at = min(again_at, tx.now if more else until - SLACK_MILLIS)
    return Look(again_at, [(one.id, one.due_at, one.kind) for one in soon])


def _find_due(tx: Tx, until: int, floor: int) -> list[Due]:
    return [Due._make(row) for row in tx.rows(sql.find_due, until=until, n=SLICE, floor=floor)]


def _next_due(tx: Tx, floor: int) -> int | None:
    following = tx.row(sql.next_due, floor=floor)
    due_at = following[0] if following else None
    tx.note_next_due(due_at)
    return due_at


def _is_held(tx: Tx, next_due_at: int | None, due: list[Due]) -> bool:
    """Whether something is due that could not be had."""
    return not due and next_due_at is not None and next_due_at <= tx.now


def _due_soon(found: list[Due], budget: HoldBudget) -> list[Due]:
    """A job with a key would keep its slot from one that is due already, and a suspect runs apart: these wait."""
    left = dict(budget.places)
    soon = []
    for one in found:
        needs = budget.needs.get(one.kind) if one.key is None and not one.crashes else None
        if needs is not None and min(left[limit] for limit in needs) > 0:
            left.update({limit: left[limit] - 1 for limit in needs})
            soon.append(one)
    return soon


def _make_ready(tx: Tx, due: list[Due]) -> None:
    free = [one for one in due if one.key is None or one.slot is not None]
    if free:
        turns = tx.turns(len(free))
        tx.update_rows(sql.ready_jobs, [(turn, one.id) for one, turn in zip(free, turns, strict=True)])
        for one, turn in zip(free, turns, strict=True):
            tx.unpark(one.kind, one.key)
            tx.wake(one.kind, one.level, turn)
    joining = [one for one in due if one.key is not None and one.slot is None]
    if joining:
        place_due(tx, joining)


PROMOTE_DUE: Verb[None, int | None] = Verb(WriterQueue.TIMERS, lambda tx, items: [promote_due(tx)] * len(items))
LOOK_AHEAD: Verb[HoldBudget, Look] = Verb(
    WriterQueue.TIMERS, lambda tx, items: [look_ahead(tx, budget) for budget in items]
)
