"""The commands of dispatch, each answered in one transaction. One merged verb takes them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ulak.dispatch.model import Code, Contact, Helper, HelpTask, SearchResult, TaskState
from ulak.dispatch.nearby.geo import Point

Wish = Literal["proceed", "search"]


@dataclass(frozen=True, slots=True)
class Open:
    """A new task, with what its first search found."""

    task: HelpTask
    found: SearchResult


@dataclass(frozen=True, slots=True)
class Answer:
    """A helper's word on a task."""

    verb: Literal["accept", "reject", "complete", "release"]
    task: int
    helper: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The requester needs no help any more."""

    task: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Expire:
    """An offer's deadline has come."""

    task: int
    offer: int


@dataclass(frozen=True, slots=True)
class Skip:
    """The helper could not be told of the offer."""

    task: int
    offer: int


@dataclass(frozen=True, slots=True)
class Extend:
    """The finds of a further search; `search` is how many there were before it."""

    task: int
    search: int
    found: SearchResult


@dataclass(frozen=True, slots=True)
class Proceed:
    """Go on asking down the list."""

    task: int


TaskCommand = Open | Answer | Withdraw | Expire | Skip | Extend | Proceed


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody is, and since when."""

    latitude: int
    longitude: int
    point: Point
    at: int


@dataclass(frozen=True, slots=True)
class Put:
    """Create a helper or change it; a field that is None keeps its value."""

    helper: str
    name: str | None = None
    active: bool | None = None
    place: Place | None = None
    skills: tuple[str, ...] | None = None
    language: str | None = None
    contact: Contact | None = None


@dataclass(frozen=True, slots=True)
class Move:
    helper: str
    place: Place


@dataclass(frozen=True, slots=True)
class Forget:
    helper: str


@dataclass(frozen=True, slots=True)
class Pull:
    """The helper looks at its offers: it is not silent."""

    helper: str


HelperCommand = Put | Move | Forget | Pull
Command = TaskCommand | HelperCommand


@dataclass(frozen=True, slots=True)
class Pending:
    """An open offer, as a task shows it."""

    helper: str
    offer: int
    deadline_at: int


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as it is at an instant: whom it waits for, and whom it would ask next."""

    task: HelpTask
    now: int
    helper: str | None = None
    pending: tuple[Pending, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(slots=True)
class TaskVerdict:
    """`code` says why nothing was done; `wish` what has to follow; `again_at` when an offer is due."""

    view: TaskView
    code: Code | None = None
    wish: Wish | None = None
    again_at: int | None = None
    change: int = 0  # by how many unfinished tasks there are more

    @property
    def state(self) -> TaskState:
        return self.view.task.state


@dataclass(frozen=True, slots=True)
class HelperVerdict:
    helper: Helper
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such task, or no such helper."""

    what: Literal["task", "helper"]


@dataclass(frozen=True, slots=True)
class Mismatched:
    """The Idempotency-Key was used before with another body."""


@dataclass(frozen=True, slots=True)
class Known:
    """The Idempotency-Key was used before: this is the task that it made."""

    task: int


CommandAnswer = TaskVerdict | HelperVerdict | Missing | Mismatched | Known
