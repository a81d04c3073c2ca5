"""The messages of the topics, read from the event log in commit order, whatever bus there is."""

from __future__ import annotations

from typing import Any

from ulak.actions.wire.events import MESSAGE_EVENT
from ulak.spine.event import read_events
from ulak.spine.store import Tx

EVENTS_PER_READ = 2000


def read_messages(tx: Tx, topic: str | None, after: int, limit: int) -> tuple[list[dict[str, Any]], int, bool]:
    """Messages above a cursor, the cursor to go on from, and whether the log ends there."""
    found: list[dict[str, Any]] = []
    events = read_events(tx, after, EVENTS_PER_READ)
    for event in events:
        after = event.seq
        if event.name == MESSAGE_EVENT and topic in (None, event.data["topic"]):
            found.append({"seq": event.seq, **{name: event.data[name] for name in ("topic", "key", "value")}})
            if len(found) == limit:
                break
    return found, after, not events
