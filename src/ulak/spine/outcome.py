"""What a handler answers. Outcomes are values; an exception is a failed attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from ulak.spine.store import Tx


@dataclass(frozen=True, slots=True)
class Done:
    """Finished. `unit`, if given, runs in the transaction that settles the job: database only, and re-runnable."""

    result: Any = None
    unit: Callable[[Tx], None] | None = None


DONE = Done()  # the usual answer; a frozen value, so one serves all


@dataclass(frozen=True, slots=True)
class Retry:
    """Not yet: try again, after the given time or the kind's backoff. The attempt counts."""

    after_seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: come back later. The attempt does not count."""

    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop for good, on purpose."""

    reason: str = ""


# Why a job is among the dead letters: what its last failure was, or that its process died with it.
ErrorClass = Literal["transient", "permanent", "throttled", "uncertain", "poison"]


@dataclass(frozen=True, slots=True)
class Dead:
    """Give up: to the dead letters with a cause. Handlers say this by raising `Permanent`."""

    cause: str
    error_class: str = "permanent"


@dataclass(frozen=True, slots=True)
class Release:
    """Hand back work that did not start; nothing is charged."""


Outcome = Done | Retry | Snooze | Cancel | Dead | Release


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
