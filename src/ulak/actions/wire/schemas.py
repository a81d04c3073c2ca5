"""JSON Schemas of the room's events, made from the types that read and write them: what they forbid is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from ulak.actions.wire import events as wire
from ulak.errors import NotFound

DRAFT = "https://json-schema.org/draft/2020-12/schema"

EVENTS: dict[str, type[msgspec.Struct]] = {
    wire.REQUESTED: wire.ActionRequest,
    wire.EXECUTED: wire.ActionExecuted,
    wire.FAILED: wire.ActionFailed,
    wire.DELIVERY_UPDATED: wire.DeliveryUpdated,
    wire.DOWNLINK_REQUESTED: wire.DownlinkRequested,
    wire.DEAD_LETTER: wire.ActionDeadLetter,
}


def schema_of(event: str) -> dict[str, Any]:
    """The schema of one event, with everything that it refers to inside it."""
    if event not in EVENTS:
        raise NotFound(f"no schema {event!r:.80}; there are: {', '.join(EVENTS)}")
    (reference,), parts = msgspec.json.schema_components([EVENTS[event]], ref_template="#/$defs/{name}")
    top = parts.pop(reference["$ref"].rpartition("/")[2])
    return {"$schema": DRAFT, "$id": f"urn:ulak:{event}", **top, "$defs": parts}
