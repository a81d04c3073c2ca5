"""Ulak carries a change to whoever must act on it, and can prove what happened."""

from __future__ import annotations

import importlib
import typing

from ulak.backoff import Backoff
from ulak.errors import (
    Conflict,
    CutOff,
    Duplicate,
    Error,
    Gone,
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
from ulak.spine.outcome import Cancel, Dead, Done, Retry, Snooze

if typing.TYPE_CHECKING:
    from ulak.app import Ulak
    from ulak.blocking import BlockingUlak

__all__ = [
    "Backoff",
    "BlockingUlak",
    "BreakerPolicy",
    "Cancel",
    "Conflict",
    "CutOff",
    "Dead",
    "Done",
    "Duplicate",
    "Error",
    "Gone",
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

# Imported when first asked for: whoever imports only errors and outcomes does not pay for the whole service.
_LAZY = {"BlockingUlak": "ulak.blocking", "Ulak": "ulak.app"}


def __getattr__(name: str) -> typing.Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
