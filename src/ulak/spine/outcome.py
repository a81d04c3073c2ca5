"""A handler's outcomes. Outcomes are values; an exception is a failed attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from ulak.spine.store import Tx


# A function and one of its items: `function(tx, items)` runs once per commit, for the items of all jobs that end in it.
Then = tuple["Callable[[Tx, list[Any]], None]", Any]


@dataclass(frozen=True, slots=True)
class Done:
    """Finished. `unit` or `then`, if given, runs in the transaction that settles the job: database only, re-runnable.

    `then` is for what many jobs do at once: one call for all, where `unit` is a call for each.

    The rest is for the breaker of its destination: `unsent` when the job ended without asking it, and the
    `error_class` of its failure when the job ended another way because of that.
    """

    result: Any = None
    unit: Callable[[Tx], None] | None = None
    then: Then | None = None
    unsent: bool = False
    error_class: str | None = None


DONE = Done()  # the usual answer; a frozen value, so one serves all


@dataclass(frozen=True, slots=True)
class Retry:
    """Not yet: try again, after the given time or the kind's backoff. The attempt counts."""

    after_seconds: float | None = None
    reason: str = ""
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: come back later. The attempt does not count.

    `holds`: the job keeps its slot meanwhile also in a bulkhead, so that nobody of its line comes up instead of it.
    """

    seconds: float
    reason: str = ""
    holds: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancelled on purpose: it does not run again."""

    reason: str = ""


# Why a job is among the dead letters: what its last failure was, or that its process died with it.
ErrorClass = Literal["transient", "permanent", "throttled", "uncertain", "poison"]


@dataclass(frozen=True, slots=True)
class Dead:
    """Give up: to the dead letters with a cause. Handlers say this, or raise `Permanent`.

    `code` is the failure in one word of its field (SMTP_TIMEOUT), for filters and counts; `then` and `unsent` are as
    with `Done`.
    """

    cause: str
    error_class: str = "permanent"
    code: str | None = None
    then: Then | None = None
    unsent: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Hand back work that did not start; nothing is charged."""


Outcome = Done | Retry | Snooze | Cancel | Dead | Release

# How an attempt ended, as counters and spans say it.
WORDS: dict[type, str] = {
    Done: "done",
    Retry: "retried",
    Snooze: "snoozed",
    Cancel: "cancelled",
    Dead: "dead",
    Release: "released",
}


class Settlement(msgspec.Struct):
    """An outcome on its way to the store, fenced by (id, epoch).

    `uncertain`: nobody saw the attempt's end, or the store could not keep it; a further run may repeat an effect.
    """

    id: int
    epoch: int
    kind: str
    key: str | None
    attempt: int
    outcome: Outcome
    resume_at: int = 0
    uncertain: bool = False
