"""How long an HTTP request waits at a bound: as long as its header says, and never without limit."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Nobody's connection is held longer than this.
MAX_WAIT_SECONDS = 30.0

# Set for each request: returns the seconds that its header asks for, or None. Called only at a bound.
asked_wait: ContextVar[Callable[[], float | None] | None] = ContextVar("asked_wait", default=None)


def is_request() -> bool:
    """Whether the caller is a request from outside, and not Python code."""
    return asked_wait.get() is not None


def bounded_wait(by_policy: float | None) -> float | None:
    """Return how long a caller waits whose kind's policy says `seconds`; None is without limit."""
    asked = asked_wait.get()
    if asked is None:
        return by_policy
    own = asked()
    wanted = by_policy if own is None else own
    return MAX_WAIT_SECONDS if wanted is None else min(wanted, MAX_WAIT_SECONDS)
