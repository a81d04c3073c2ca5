"""Views for observers: tasks with their timelines, helpers, open offers, and why a search found whom it found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ulak import codec
from ulak.dispatch.command import Pending, TaskView
from ulak.dispatch.model import Candidate, Excluded, Helper, HelperStatus, HelpTask, Offer, OfferState, TaskState
from ulak.dispatch.nearby.bbox import Box
from ulak.dispatch.nearby.eligible import standing
from ulak.dispatch.nearby.geo import meters_of
from ulak.dispatch.nearby.search import MAX_SHOWN
from ulak.dispatch.policy import Policy
from ulak.dispatch.records import candidates_of, excluded_of, to_helper, to_offer, to_task
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

NEWEST = 1 << 62
_WAITS = (TaskState.SEARCHING, TaskState.OFFERED)


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One step in a task's timeline."""

    at: int
    what: str
    helper: str | None = None
    offer: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class OpenOffer:
    """An offer as its helper sees it."""

    id: int
    task: int
    category: str
    description: str | None
    distance: float
    deadline_at: int
    now: int


@dataclass(frozen=True, slots=True)
class Ranked:
    place: int
    helper: str
    distance: float
    completed: int
    timeouts: int
    reason: str


@dataclass(frozen=True, slots=True)
class SearchView:
    """Why a search found whom it found."""

    search: int
    at: int
    radius: float
    found: int
    ranked: tuple[Ranked, ...]
    excluded: tuple[Excluded, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class TaskFilter:
    state: TaskState | None = None
    helper: str | None = None
    requester: str | None = None


def read_task(tx: Tx, identifier: int, policy: Policy) -> TaskView | None:
    row = tx.row(sql.read_task, id=identifier)
    return None if row is None else _with_lists(tx, [to_task(row)], policy)[0]


def list_tasks(tx: Tx, wanted: TaskFilter, before: int, limit: int, policy: Policy) -> list[TaskView]:
    """Newest first."""
    state = None if wanted.state is None else wanted.state.value
    if wanted.helper is not None:
        rows = tx.rows(
            sql.list_tasks_by_helper,
            helper=wanted.helper, requester=wanted.requester, state=state, before=before, n=limit,
        )  # fmt: skip
    elif wanted.requester is not None:
        rows = tx.rows(sql.list_tasks_by_requester, requester=wanted.requester, state=state, before=before, n=limit)
    elif state is not None:
        rows = tx.rows(sql.list_tasks_by_state, state=state, before=before, n=limit)
    else:
        rows = tx.rows(sql.list_tasks, before=before, n=limit)
    return _with_lists(tx, [to_task(row) for row in rows], policy)


def _with_lists(tx: Tx, tasks: list[HelpTask], policy: Policy) -> list[TaskView]:
    waiting = sorted((task for task in tasks if task.state in _WAITS), key=lambda task: task.id)
    pending: defaultdict[int, list[Pending]] = defaultdict(list)
    lists: dict[int, tuple[Candidate, ...]] = {}
    if waiting:
        numbers = [task.id for task in waiting]
        for task, offer, helper, deadline_at in sorted(tx.rows(sql.list_pending, tasks=numbers)):
            pending[task].append(Pending(helper, offer, deadline_at))
        found = tx.rows(sql.load_candidates, tasks=numbers, searches=[task.searches - 1 for task in waiting])
        lists = {task: candidates_of(packed) for task, _, packed in found}
    return [
        TaskView(
            task,
            tx.now,
            task.helper_name,
            tuple(pending[task.id]),
            _names(task, lists.get(task.id, ()), tx.now, policy),
        )
        for task in tasks
    ]


def _names(task: HelpTask, candidates: tuple[Candidate, ...], now: int, policy: Policy) -> tuple[str, ...]:
    if now - task.searched_at >= policy.candidates_millis:
        return ()
    return tuple(one.helper for one in candidates[task.place :])


def read_timeline(tx: Tx, task: HelpTask) -> list[TaskStep]:
    """In order, also within one millisecond: a search, its offers and their ends, the next search."""
    searches = [(row[1], row[3], candidates_of(row[6])) for row in tx.rows(sql.list_searches, task=task.id)]
    last = {one.id: number for number, (_, _, candidates) in enumerate(searches) for one in candidates}
    offers = [to_offer(row) for row in sorted(tx.rows(sql.load_offers, tasks=[task.id]))]
    steps = [TaskStep(task.created_at, "opened")]
    for number, (at, found, candidates) in enumerate(searches):
        steps.append(TaskStep(at, "searched", reason=f"{found} found"))
        names = {one.id: one.helper for one in candidates}
        steps += _offer_steps([one for one in offers if last.get(one.helper) == number], names, task.width)
    if task.ended_at is not None:
        steps.append(TaskStep(task.ended_at, task.state.lower(), task.helper_name, reason=task.reason))
    return sorted(steps, key=lambda step: step.at)


def _offer_steps(offers: list[Offer], names: dict[int, str], width: int) -> Iterator[TaskStep]:
    """Of one search: at most `width` are open at a time, so an end may have to stand before the next offer."""
    running: list[Offer] = []
    for offer in offers:
        if len(running) == width:
            yield from _end_first(running, names)
        yield TaskStep(offer.opened_at, "offered", names[offer.helper], offer.id)
        running.append(offer)
        running.sort(key=_end_order)
    while running:
        yield from _end_first(running, names)


def _end_order(offer: Offer) -> tuple[int, int, int]:
    """An accept comes after all answers to other offers, and withdraws those that are left."""
    is_left = offer.state is OfferState.WITHDRAWN and offer.reason != "undelivered"
    rank = 2 if is_left else int(offer.state is OfferState.ACCEPTED)
    return NEWEST if offer.ended_at is None else offer.ended_at, rank, offer.id


def _end_first(running: list[Offer], names: dict[int, str]) -> Iterator[TaskStep]:
    offer = running.pop(0)
    helper = names[offer.helper]
    if offer.ended_at is not None:
        reason = None if offer.released_at else offer.reason
        yield TaskStep(offer.ended_at, offer.state.lower(), helper, offer.id, reason)
    while running and offer.state is OfferState.ACCEPTED:
        yield from _end_first(running, names)
    if offer.released_at is not None:
        yield TaskStep(offer.released_at, "released", helper, offer.id, offer.reason)


def read_whole(tx: Tx, task: int, policy: Policy) -> tuple[TaskView, list[TaskStep]] | None:
    view = read_task(tx, task, policy)
    return None if view is None else (view, read_timeline(tx, view.task))


def read_searches(tx: Tx, task: int) -> list[SearchView]:
    return [_search_view(row) for row in tx.rows(sql.list_searches, task=task)]


def _search_view(row: tuple[Any, ...]) -> SearchView:
    search, at, radius, found, excluded, counts, packed = row
    candidates = candidates_of(packed)[:MAX_SHOWN]
    before = (None, *candidates)
    ranked = tuple(
        Ranked(place, one.helper, round(meters_of(one.chord), 1), one.completed, one.timeouts, standing(one, last))
        for place, (one, last) in enumerate(zip(candidates, before, strict=False), 1)
    )
    return SearchView(search + 1, at, radius / 1000, found, ranked, excluded_of(excluded), codec.decode(counts))


def read_helper(tx: Tx, name: str) -> Helper | None:
    row = tx.row(sql.read_helper, helper=name)
    return None if row is None else to_helper(row)


def read_open_offers(tx: Tx, helper: int) -> list[OpenOffer]:
    """At most one, as it is; each with what its task asks for."""
    found = []
    for offer, identifier, distance, deadline_at in tx.rows(sql.list_open_offers, helper=helper):
        row = tx.row(sql.read_task, id=identifier)
        if row is not None:
            task = to_task(row)
            about = (task.category, task.description)
            found.append(OpenOffer(offer, task.id, *about, distance / 1000, deadline_at, tx.now))
    return found


def list_helpers(
    tx: Tx, policy: Policy, status: HelperStatus | None, box: Box | None, after: str, limit: int
) -> list[Helper]:
    """By id. A box is answered from its cells."""
    named = None if status is None else status.value
    wanted = {"after": after, "status": named, "pause_after": policy.pause_after, "n": limit}
    if box is None:
        return [to_helper(row) for row in tx.rows(sql.list_helpers, **wanted)]
    ranges = box.ranges()
    spans = {"ranges": [list(one) for one in ranges]}
    ends = {"low": [one.low for one in ranges], "high": [one.high for one in ranges]}
    return [to_helper(row) for row in tx.rows(sql.list_helpers_within, **wanted, **spans, **ends, **box.edges)]
