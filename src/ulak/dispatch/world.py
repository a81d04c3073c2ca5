"""The world that a batch of commands is decided in: what was loaded for it, and what it leaves to be saved and told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Literal

from ulak.dispatch.command import Pending, TaskView
from ulak.dispatch.model import Candidate, Helper, HelpTask, Offer, SearchResult, TaskState
from ulak.dispatch.nearby.geo import from_nano
from ulak.dispatch.policy import Policy

Occasion = Literal["offer", "taken", "cancelled", "assigned", "nobody"]


@dataclass(frozen=True, slots=True)
class Note:
    """Somebody has to be told: the helper of an offer, or the requester of a task."""

    occasion: Occasion
    task: HelpTask
    helper: Helper | None = None
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a task, or of one of its offers."""

    name: str
    task: int
    offer: int | None
    details: dict[str, str]


@dataclass(slots=True)
class WorldChanges:
    """The changes of a batch: to be saved, told and armed; `before` has the states of tasks and offers as loaded."""

    before: dict[int, str] = field(default_factory=dict)
    tasks: dict[int, HelpTask] = field(default_factory=dict)
    new_tasks: dict[int, HelpTask] = field(default_factory=dict)
    offers: dict[int, Offer] = field(default_factory=dict)
    new_offers: dict[int, Offer] = field(default_factory=dict)
    helpers: dict[int, Helper] = field(default_factory=dict)
    new_helpers: dict[int, Helper] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    forgotten: list[int] = field(default_factory=list)
    searches: list[tuple[HelpTask, int, SearchResult]] = field(default_factory=list)
    wishes: set[int] = field(default_factory=set)
    idle_timers: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    events: list[Happening] = field(default_factory=list)


@dataclass(slots=True)
class World:
    """Everything that a batch of commands needs, loaded and locked; `seen` are the helpers that were looked for."""

    now: int
    policy: Policy
    take_id: Callable[[], int]
    tasks: dict[int, HelpTask] = field(default_factory=dict)
    offers: dict[int, list[Offer]] = field(default_factory=dict)
    lists: dict[int, Sequence[Candidate]] = field(default_factory=dict)
    helpers: dict[int, Helper] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    once: dict[str, tuple[int, str]] = field(default_factory=dict)
    changes: WorldChanges = field(default_factory=WorldChanges)

    @property
    def month(self) -> int:
        return self.policy.month(self.now)

    def named(self, name: str) -> Helper | None:
        return self.helpers.get(self.names.get(name, 0))

    def open_offers(self, task: HelpTask) -> list[Offer]:
        return [offer for offer in self.offers[task.id] if offer.is_open]

    def waiting(self, task: HelpTask) -> Sequence[Candidate]:
        """Return the candidates still to be asked; a list that is too old counts as used up."""
        if self.now - task.searched_at >= self.policy.candidates_millis:
            return ()
        return self.lists.get(task.id, ())[task.place :]


def place_of(task: HelpTask) -> tuple[float, float]:
    return from_nano(task.latitude), from_nano(task.longitude)


def view_of(world: World, task: HelpTask) -> TaskView:
    pending = tuple(_pending(world, offer) for offer in world.open_offers(task))
    lists = task.state in (TaskState.SEARCHING, TaskState.OFFERED)
    waiting = tuple(one.helper for one in world.waiting(task)) if lists else ()
    return TaskView(copy(task), world.now, task.helper_name, pending, waiting)


def _pending(world: World, offer: Offer) -> Pending:
    helper = world.helpers.get(offer.helper)
    return Pending("" if helper is None else helper.helper, offer.id, offer.deadline_at)
