"""Ulak carries a change to whoever must act on it, and can prove what happened."""

from __future__ import annotations

from ulak.app import Ulak
from ulak.backoff import Backoff
from ulak.blocking import BlockingUlak
from ulak.errors import (
    Conflict,
    CutOff,
    Duplicate,
    Error,
    IllegalTransition,
    Invalid,
    Misconfigured,
    NotFound,
    Permanent,
    Refused,
    Throttled,
    Transient,
    Unavailable,
)
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.job import Job, NewJob, Priority
from ulak.spine.outcome import Cancel, Done, Retry, Snooze

__all__ = [
    "Backoff",
    "BlockingUlak",
    "BreakerPolicy",
    "Cancel",
    "Conflict",
    "CutOff",
    "Done",
    "Duplicate",
    "Error",
    "IllegalTransition",
    "Invalid",
    "Job",
    "Misconfigured",
    "NewJob",
    "NotFound",
    "Permanent",
    "Priority",
    "Refused",
    "Retry",
    "Snooze",
    "Throttled",
    "Transient",
    "Ulak",
    "Unavailable",
]
