"""The room's nouns: helpers, tasks, offers and candidates; their states and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from ulak.dispatch.nearby.geo import Point
from ulak.errors import IllegalTransition

EXPIRE = "dispatch.expire"
SEARCH = "dispatch.search"
UNDELIVERED = "dispatch.undelivered"

MAX_WIDTH = 50


class TaskState(StrEnum):
    SEARCHING = "SEARCHING"
    OFFERED = "OFFERED"
    ASSIGNED = "ASSIGNED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"


class OfferState(StrEnum):
    OPEN = "OPEN"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"


class HelperStatus(StrEnum):
    """A helper's status on the wire."""

    IDLE = "IDLE"
    OFFERED = "OFFERED"
    BUSY = "BUSY"
    PAUSED = "PAUSED"
    INACTIVE = "INACTIVE"


class Code(StrEnum):
    """Why an answer is refused: the first that fits."""

    ALREADY_TAKEN = "ALREADY_TAKEN"
    TASK_CANCELLED = "TASK_CANCELLED"
    OFFER_EXPIRED = "OFFER_EXPIRED"
    OFFER_CLOSED = "OFFER_CLOSED"
    NOT_OFFERED = "NOT_OFFERED"
    NOT_ASSIGNED = "NOT_ASSIGNED"
    TASK_ENDED = "TASK_ENDED"


_T, _O = TaskState, OfferState
_ENDS = frozenset({_T.COMPLETED, _T.CANCELLED, _T.TIMED_OUT})
LIVE = tuple(state for state in _T if state not in _ENDS)

# A new task begins as SEARCHING, in the transaction that also makes its first offers.
TASK_MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    _T.SEARCHING: frozenset({_T.OFFERED, _T.CANCELLED, _T.TIMED_OUT}),
    _T.OFFERED: frozenset({_T.ASSIGNED, _T.SEARCHING, _T.CANCELLED, _T.TIMED_OUT}),
    _T.ASSIGNED: frozenset({_T.COMPLETED, _T.SEARCHING, _T.CANCELLED}),
    **dict.fromkeys(_ENDS, frozenset()),
}
OFFER_MOVES: Mapping[OfferState, frozenset[OfferState]] = {
    _O.OPEN: frozenset(_O) - {_O.OPEN},
    **dict.fromkeys(frozenset(_O) - {_O.OPEN}, frozenset()),
}

# The values of dispatch_helper.doing.
IDLE, OFFERED, BUSY = range(3)


@dataclass(frozen=True, slots=True)
class Contact:
    """By which notification type, and under which name there, somebody is reached."""

    notification_type: str
    recipient: str


class Helper(msgspec.Struct, gc=False):
    """`id` is ours, a number; `helper` is the caller's own. Counts are of the month that `month` numbers."""

    id: int
    helper: str
    name: str | None = None
    active: bool = True
    doing: int = IDLE
    latitude: int | None = None
    longitude: int | None = None
    point: Point | None = None
    position_at: int | None = None
    skills: tuple[str, ...] = ()
    language: str | None = None
    contact: Contact = Contact("IN_APP", "")
    month: int = 0
    completed: int = 0
    expired: int = 0
    timeouts: int = 0
    served_at: int = 0

    def roll(self, month: int) -> None:
        """Begin a new month's counts."""
        if self.month != month:
            self.month, self.completed, self.expired = month, 0, 0

    def completed_in(self, month: int) -> int:
        return self.completed if self.month == month else 0

    def status(self, pause_after: int) -> HelperStatus:
        if self.doing:
            return HelperStatus.BUSY if self.doing == BUSY else HelperStatus.OFFERED
        if not self.active:
            return HelperStatus.INACTIVE
        return HelperStatus.PAUSED if self.timeouts >= pause_after else HelperStatus.IDLE


class Offer(msgspec.Struct, gc=False):
    id: int
    task: int
    helper: int
    state: OfferState
    opened_at: int
    deadline_at: int
    distance: float
    timer: int = 0
    message: int = 0
    ended_at: int | None = None
    released_at: int | None = None
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state is OfferState.OPEN

    def move(self, state: OfferState, now: int) -> None:
        if state not in OFFER_MOVES[self.state]:
            raise IllegalTransition(f"offer {self.id} is {self.state} and can't become {state}")
        self.state, self.ended_at = state, now


class HelpTask(msgspec.Struct, gc=False):
    """A request for help, from its opening to its end."""

    id: int
    requester: str
    category: str
    latitude: int
    longitude: int
    radius: float
    deadline_seconds: float
    width: int
    created_at: int
    description: str | None = None
    skills: tuple[str, ...] = ()
    language: str | None = None
    contact: Contact = Contact("IN_APP", "")
    state: TaskState = TaskState.SEARCHING
    helper: int | None = None
    helper_name: str | None = None
    searches: int = 0
    max_searches: int = 1
    searched_at: int = 0
    place: int = 0
    timer: int = 0
    assigned_at: int | None = None
    ended_at: int | None = None
    reason: str | None = None
    once: str | None = None
    digest: str | None = None
    trace: str | None = None  # to which all its timers and messages belong

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    def move(self, state: TaskState) -> None:
        if state not in TASK_MOVES[self.state]:
            raise IllegalTransition(f"task {self.id} is {self.state} and can't become {state}")
        self.state = state


class Candidate(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A helper that a search found, with the figures by which it was ranked."""

    id: int
    helper: str
    chord: int
    load: int
    completed: int
    timeouts: int


class Excluded(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A helper within the circle who is not asked, and why not."""

    helper: str
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of one search: candidates in the order in which they are asked, and those left out."""

    at: int
    radius: float
    candidates: tuple[Candidate, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
