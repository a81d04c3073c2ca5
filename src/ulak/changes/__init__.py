"""The changes room: full lists in, a change feed out that no consumer can lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulak.changes.follower import Follower

__all__ = ["Follower"]


def __getattr__(name: str) -> Any:
    """Load the client when it is first asked for: a process that needs only the room does without."""
    if name == "Follower":
        from ulak.changes import follower

        return follower.Follower
    raise AttributeError(name)
