"""A world in memory for tests of the room's decisions: helpers in a row, tasks that search them, commands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ulak.dispatch.command import Answer, Expire, Extend, Open, Place, Proceed, Put, TaskVerdict, Withdraw
from ulak.dispatch.decide import apply
from ulak.dispatch.model import Contact, HelpTask, SearchResult
from ulak.dispatch.nearby.eligible import obstacle, rank, to_candidate
from ulak.dispatch.nearby.geo import chord_of, point_at, to_nano
from ulak.dispatch.policy import Policy
from ulak.dispatch.roster import apply_to_helper
from ulak.dispatch.world import World, place_of

START = 1_800_000_000_000


def place(latitude: float, longitude: float, at: int = START) -> Place:
    return Place(to_nano(latitude), to_nano(longitude), point_at(latitude, longitude), at)


@dataclass
class Town:
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.world = World(START, self.policy, lambda: next(numbers))

    def helpers(self, number: int, **fields: Any) -> list[str]:
        """h0 is nearest, then h1, …: eleven metres from one to the next."""
        names = [f"h{index}" for index in range(number)]
        for index, name in enumerate(names):
            self.put(name, place=place(41 + index * 1e-4, 29, self.world.now), **fields)
        return names

    def put(self, name: str, **fields: Any) -> None:
        apply_to_helper(self.world, Put(name, **fields))
        self.world.seen = set(self.world.helpers)

    def helper(self, name: str) -> Any:
        found = self.world.named(name)
        assert found is not None
        return found

    def task(self, **fields: Any) -> HelpTask:
        given = {"radius": 1000.0, "deadline_seconds": 600.0, "width": 1} | fields
        return HelpTask(
            self.world.take_id(), "ayşe", "market", to_nano(41), to_nano(29), created_at=self.world.now,
            contact=Contact("IN_APP", "ayşe"), **given,
        )  # fmt: skip

    def search(self, task: HelpTask) -> SearchResult:
        world = self.world
        asked = {offer.helper for offer in world.offers.get(task.id, ())}
        centre, limit = point_at(*place_of(task)), chord_of(task.radius)
        found = [
            to_candidate(helper, centre, world.month, world.policy)
            for helper in world.helpers.values()
            if helper.point is not None and obstacle(helper, task.skills, asked, world.now, world.policy) is None
        ]
        return SearchResult(world.now, task.radius, tuple(sorted((c for c in found if c.chord <= limit), key=rank)))

    def open(self, **fields: Any) -> TaskVerdict:
        task = self.task(**fields)
        return self._follow(apply(self.world, Open(task, self.search(task))))

    def answer(self, verb: Any, task: int, helper: str, reason: str | None = None) -> TaskVerdict:
        return self._follow(apply(self.world, Answer(verb, task, helper, reason)))

    def cancel(self, task: int) -> TaskVerdict:
        return self._follow(apply(self.world, Withdraw(task, "no need")))

    def expire(self, task: int, offer: int) -> TaskVerdict:
        return self._follow(apply(self.world, Expire(task, offer)))

    def _follow(self, verdict: Any) -> TaskVerdict:
        """As the service does: search again or go on, until nothing more is wished for. The first code stands."""
        code = verdict.code
        while verdict.wish:
            task = self.world.tasks[verdict.view.task.id]
            if verdict.wish == "search":
                verdict = apply(self.world, Extend(task.id, task.searches, self.search(task)))
            else:
                self.world.seen = set(self.world.helpers)
                verdict = apply(self.world, Proceed(task.id))
        return replace(verdict, code=code)

    def advance(self, seconds: float) -> None:
        self.world.now += round(seconds * 1000)

    def occasions(self) -> list[str]:
        return [note.occasion for note in self.world.changes.notes]
