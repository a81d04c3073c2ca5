"""How long a caller waits at a bound who is not Python code: a request says so in a header, and never without limit."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Nobody's connection is held longer than this.
MAX_WAIT_SECONDS = 30.0

# Set for each request: answers the seconds that it asks for itself, or None. Asked only at a bound.
asked_wait: ContextVar[Callable[[], float | None] | None] = ContextVar("asked_wait", default=None)


def is_request() -> bool:
    """Whether the caller is a request from outside, and not Python code."""
    return asked_wait.get() is not None


def bounded_wait(by_policy: float | None) -> float | None:
    """Return how long a caller waits where its kind's policy says so long; None is without limit."""
    asked = asked_wait.get()
    if asked is None:
        return by_policy
    own = asked()
    wanted = by_policy if own is None else own
    return MAX_WAIT_SECONDS if wanted is None else min(wanted, MAX_WAIT_SECONDS)
