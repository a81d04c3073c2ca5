"""A job: the states and words of its life, the form in which it is enqueued, and the form a handler sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple

import msgspec
from typing_extensions import TypeVar

from ulak.clock import to_datetime
from ulak.ids import FIRST_MARK, to_text

MAX_KIND = 100  # characters of a kind's name

OnUncertain = Literal["resend", "hold"]
Status = Literal[
    "ready", "deferred", "running", "behind", "suspect", "done", "cancelled", "expired", "dead"
]  # of a job, as an observer sees it
Payload = TypeVar("Payload", default=Any)


class Priority(IntEnum):
    URGENT = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class State(IntEnum):
    """Where a live job stands. Finished jobs leave the table for `past` or `dead`."""

    READY = 0
    DEFERRED = 1
    LEASED = 2
    BEHIND = 3  # its key has no free slot
    SUSPECT = 4  # ready, but it was running when a process died, or nobody knows how an attempt ended


# The same as plain numbers, which drivers bind faster than members of an enum.
READY, DEFERRED, LEASED, BEHIND, SUSPECT = (int(state) for state in State)
PARKED = frozenset({DEFERRED, BEHIND})  # all others are active: a worker runs them, or could now

# The level under which a wake-up announces suspects: they are claimed apart from the priorities.
SUSPECT_LEVEL = 9


class JobEvent(StrEnum):
    """The words of a job's life: one list for events, counters, timelines, API and docs."""

    ACCEPTED = "accepted"
    STARTED = "started"
    DONE = "done"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    RELEASED = "released"
    UNCERTAIN = "uncertain"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DEAD = "dead"
    FAILED = "failed"  # in the tally only: of the dead, those that could never work
    HELD = "held"  # in the tally only: of the dead, those that wait for a person's decision
    REDRIVEN = "redriven"


class NewJob(msgspec.Struct, frozen=True):
    """A job to enqueue.

    `key` with `slots` bounds how many jobs of that key run at once: 1 is strict order per key, more is a bulkhead.
    `continuation` is a job kind that is enqueued with the outcome, in the transaction that settles this job.
    """

    kind: str
    payload: Any = None
    priority: Priority = Priority.NORMAL
    key: str | None = None
    slots: int = 1
    delay_seconds: float | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    unique_key: str | None = None
    continuation: str | None = None
    on_uncertain: OnUncertain = "resend"


class Row(NamedTuple):
    """A new job as the store takes it. The order is that of insert_jobs.sql."""

    id: int
    kind: str
    key: str | None
    slots: int
    slot: int | None
    prio: int
    due_at: int
    state: int
    accepted_at: int
    expires_at: int | None
    unique_key: str | None
    continuation: str | None
    hold: int
    payload: bytes
    trace: str | None = None

    @property
    def is_usual(self) -> bool:
        """It is due at once and has none of the rarer columns: expires_at, unique_key, continuation, hold, trace."""
        return self[9:13] == (None, None, None, 0) and self.trace is None and self.due_at == self.accepted_at

    @property
    def common(self) -> tuple[str, int, int, int]:
        """Return the part that many jobs have in common: kind, priority, slots and state."""
        return self.kind, self.prio, self.slots, self.state


class Lease(msgspec.Struct, array_like=True, frozen=True, order=True):
    """A claimed job as the store hands it out. The order is that of read_claimed.sql and claim_jobs.postgres.sql."""

    id: int
    epoch: int
    kind: str
    key: str | None
    prio: int
    attempt: int
    crashes: int
    accepted_at: int
    due_at: int
    expires_at: int | None
    payload: Any  # a JSON document, as text or as bytes
    trace: str | None = None
    turn: int = 0  # where claims have a floor, which is a turn


# For `map` over leases, settlements or rows: many jobs are looked at without a turn of the interpreter for each.
kind_of = attrgetter("kind")


class Job(msgspec.Struct, Generic[Payload]):
    """A job as its handler sees it. `Job[Order]` has an Order as its payload: `handles(kind, payload=Order)`."""

    id: int
    kind: str
    payload: Payload
    attempt: int
    epoch: int
    key: str | None = None
    priority: Priority = Priority.NORMAL
    crashes: int = 0
    accepted_millis: int = 0  # one is made for every attempt, and few handlers ask for the time
    started_millis: int = 0
    mark: int = FIRST_MARK
    trace: str | None = None  # of this attempt's span, to pass on in requests to others: `headers_of(job.trace)`

    @property
    def uuid(self) -> str:
        """The job's id as the outside sees it: unique across installations, and the same at every attempt."""
        return to_text(self.id, self.mark)

    @property
    def accepted_at(self) -> datetime:
        return to_datetime(self.accepted_millis)

    @property
    def started_at(self) -> datetime:
        """When this attempt was."""
        return to_datetime(self.started_millis)

    @property
    def uncertain(self) -> bool:
        """An earlier attempt was cut off, or its end could not be kept: it may have had its effect."""
        return self.crashes > 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One step in a job's timeline."""

    at: datetime
    word: str
    attempt: int
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A job as an observer sees it, live or finished."""

    id: int
    kind: str
    status: Status
    key: str | None
    priority: Priority
    attempt: int
    crashes: int
    accepted_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    settled_at: datetime | None
    expires_at: datetime | None
    unique_key: str | None
    payload: Any
    detail: Any
    timeline: tuple[Entry, ...]
    code: str | None = None  # of a dead letter whose failure has one
    error_class: str | None = None  # of a dead letter
    trace: str | None = None  # where traces were on when it was accepted
