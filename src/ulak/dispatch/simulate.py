"""Simulations: the room's own decisions on a virtual clock, over an invented town or over recorded tasks."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from statistics import median, quantiles
from typing import Any

from ulak.clock import to_millis
from ulak.dispatch.command import Answer, Expire, Extend, Open, Proceed, TaskCommand, TaskVerdict
from ulak.dispatch.decide import apply
from ulak.dispatch.fairness import gini_of
from ulak.dispatch.model import Contact, Helper, HelpTask, SearchResult
from ulak.dispatch.nearby.eligible import obstacle, rank, to_candidate
from ulak.dispatch.nearby.geo import chord_of, point_at, to_nano
from ulak.dispatch.policy import NEVER, Policy
from ulak.dispatch.world import World, WorldChanges, place_of

CENTRE = (41.0082, 28.9784)
GAP_SECONDS = 7200.0
ANSWER_SECONDS = 90.0
ACCEPTANCE = 0.5
_SPREAD_DEGREES = 0.005  # within a kilometre of the centre, in both directions


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A helper as a simulation sees it. A silent one never answers."""

    name: str
    latitude: float
    longitude: float
    silent: bool = False
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A task to come: when, where, and how long it keeps its helper."""

    at: int
    latitude: float
    longitude: float
    radius: float = 1000.0
    deadline_seconds: float = 600.0
    busy_seconds: float = 0.0
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    policy: str
    median_seconds: float
    p95_seconds: float
    gini: float
    assigned: int
    unassigned: int
    seconds: tuple[float, ...] = field(default=(), repr=False)


POLICIES: dict[str, tuple[dict[str, Any], int]] = {
    "seed": ({"expiry_weight": 0, "pause_after": NEVER}, 1),
    "repaired": ({}, 1),
    "width-3": ({}, 3),
    "width-7": ({}, 7),
}


def town(helpers: int, requests: int, silent: float, seed: int, start: int) -> tuple[list[Neighbour], list[Call]]:
    """Helpers around one centre, and calls that come one at a time."""
    chance = random.Random(seed)
    quiet = round(helpers * silent)
    latitude, longitude = CENTRE

    def near(degrees: float) -> float:
        return degrees + chance.uniform(-_SPREAD_DEGREES, _SPREAD_DEGREES)

    people = [Neighbour(f"h{number:04}", near(latitude), near(longitude), number < quiet) for number in range(helpers)]
    gap = round(GAP_SECONDS * 1000)
    return people, [Call(start + number * gap, latitude, longitude) for number in range(requests)]


def simulate(
    people: Sequence[Neighbour], calls: Sequence[Call], seed: int, rules: Policy, names: Iterable[str] = POLICIES
) -> list[PolicyOutcome]:
    """Every policy over the same town, with the same luck."""
    outcomes = []
    for name in names:
        changes, width = POLICIES[name]
        outcomes.append(_Run(people, replace(rules, **changes), width, seed).run(name, calls))
    return outcomes


class _Run:
    """One policy: a heap of what happens next, decided by the room's own rules."""

    def __init__(self, people: Sequence[Neighbour], policy: Policy, width: int, seed: int) -> None:
        self._numbers = count(1)
        self._seed = seed
        self._calls = count()
        self._width = width
        self._world = World(0, policy, lambda: next(self._numbers))
        self._people = {one.name: one for one in people}
        self._heap: list[tuple[int, int, Call | TaskCommand]] = []
        self._served: Counter[str] = Counter()
        self._waits: list[float] = []
        self._busy: dict[int, float] = {}
        for one in people:
            self._settle_in(one)

    def _settle_in(self, one: Neighbour) -> None:
        helper = Helper(self._world.take_id(), one.name, skills=one.skills, contact=Contact("IN_APP", one.name))
        helper.latitude, helper.longitude = to_nano(one.latitude), to_nano(one.longitude)
        helper.point = point_at(one.latitude, one.longitude)
        self._world.helpers[helper.id] = helper
        self._world.names[one.name] = helper.id
        self._world.seen.add(helper.id)

    def run(self, name: str, calls: Sequence[Call]) -> PolicyOutcome:
        for call in calls:
            self._push(call.at, call)
        while self._heap:
            at, _, what = heapq.heappop(self._heap)
            self._world.now = at
            self._take(self._open(what) if isinstance(what, Call) else what)
        able = [one for one in self._people.values() if not one.silent]
        shares = gini_of(Counter(self._served[one.name] for one in able))
        waits = sorted(self._waits)
        tail = quantiles(waits, n=20)[-1] if len(waits) > 1 else sum(waits)
        middle = median(waits) if waits else 0.0
        return PolicyOutcome(
            name, round(middle, 1), round(tail, 1), round(shares, 4), len(waits), len(calls) - len(waits), tuple(waits)
        )

    def _push(self, at: int, what: Call | TaskCommand) -> None:
        heapq.heappush(self._heap, (at, next(self._numbers), what))

    def _open(self, call: Call) -> Open:
        for helper in self._world.helpers.values():
            helper.position_at = self._world.now  # nobody is stale in a simulation
        task = HelpTask(
            self._world.take_id(), "", f"call {next(self._calls)}", to_nano(call.latitude), to_nano(call.longitude),
            call.radius, call.deadline_seconds, self._width, self._world.now, skills=call.skills,
        )  # fmt: skip
        self._busy[task.id] = call.busy_seconds
        return Open(task, self._search(task))

    def _search(self, task: HelpTask) -> SearchResult:
        world = self._world
        asked = {offer.helper for offer in world.offers.get(task.id, ())}
        radius = world.policy.radius_of(task.radius, task.searches)
        centre, limit, month = point_at(*place_of(task)), chord_of(radius), world.month
        free = [
            to_candidate(helper, centre, month, world.policy)
            for helper in world.helpers.values()
            if obstacle(helper, task.skills, asked, world.now, world.policy) is None
        ]
        found = sorted((one for one in free if one.chord <= limit), key=rank)
        return SearchResult(world.now, radius, tuple(found[: world.policy.max_candidates]))

    def _take(self, command: TaskCommand) -> None:
        verdict = apply(self._world, command)
        assert isinstance(verdict, TaskVerdict)
        task = self._world.tasks[verdict.view.task.id]
        offers, self._world.changes = self._world.changes.new_offers.values(), WorldChanges()
        for offer in offers:
            self._push(offer.deadline_at, Expire(task.id, offer.id))
            self._answer(task, self._world.helpers[offer.helper].helper)
        if isinstance(command, Answer) and command.verb == "accept" and verdict.code is None:
            self._serve(task, command.helper)
        if verdict.wish == "search":
            self._take(Extend(task.id, task.searches, self._search(task)))
        elif verdict.wish == "proceed":
            self._take(Proceed(task.id))
        elif not task.is_live:
            self._drop(task)

    def _answer(self, task: HelpTask, name: str) -> None:
        """A helper's answer to a call is the same under every policy."""
        if not self._people[name].silent:
            chance = random.Random(f"{self._seed} {task.category} {name}")
            at = self._world.now + round(chance.expovariate(1 / ANSWER_SECONDS) * 1000)
            self._push(at, Answer("accept" if chance.random() < ACCEPTANCE else "reject", task.id, name))

    def _serve(self, task: HelpTask, name: str) -> None:
        self._served[name] += 1
        self._waits.append((self._world.now - task.created_at) / 1000)
        done_at = self._world.now + round(self._busy.pop(task.id) * 1000)
        self._push(done_at, Answer("complete", task.id, name))

    def _drop(self, task: HelpTask) -> None:
        """Forget an ended task's candidates. Answers and deadlines still to come find it ended."""
        self._world.lists.pop(task.id, None)


def first_of_month() -> int:
    """An invented town begins with a month, so that its counts are of one month."""
    return to_millis(datetime(2027, 1, 1, tzinfo=UTC))
