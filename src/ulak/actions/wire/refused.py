"""Requests of a bus that could not be run: reported on the topics, since nobody waits for an answer."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from ulak.actions.model import MAX_DEVICE_ID, MAX_NUMBER, ROOM
from ulak.actions.wire import events as wire
from ulak.actions.wire.request import salvaged
from ulak.errors import Error, Invalid
from ulak.masking import mask_text
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

UNREADABLE = "REQUEST_UNREADABLE"
INVALID, CONFLICT = "REQUEST_INVALID", "REQUEST_CONFLICT"


def refuse_requests(tx: Tx, refused: Sequence[tuple[bytes | dict[str, Any], Error]]) -> None:
    """A failed event for each, at the stage request_validate and without a step."""
    for given, error in refused:
        known = salvaged(given)
        context = wire.EventContext(_text(known, "device_id"), _number(known, "stream_id"))
        code = INVALID if isinstance(error, Invalid) else CONFLICT
        value = wire.ActionFailed(
            wire.FAILED,
            wire.meta_of(_trace(known), tx.now, 0),
            context,
            wire.FailedData(
                _number(known, "group_id"), _number(known, "rule_id"), _number(known, "action_plan_id"), None, None
            ),
            wire.FailedError("request_validate", code, mask_text(str(error))[:500], False, wire.instant(tx.now)),
        )
        tx.emit(wire.MESSAGE_EVENT, 0, ROOM, wire.message(wire.FAILED_TOPIC, context.device_id, value))


def tell_unreadable(tx: Tx, body: bytes, topic: str, partition: int, offset: int) -> bool:
    """Keep the bytes and tell the dead-letter topic; once, however often the bus brings them."""
    if not tx.execute(sql.keep_unreadable, topic=topic, part=partition, position=offset, body=body, now=tx.now):
        return False
    why = f"{len(body)} bytes at {topic}[{partition}] offset {offset} are not a request"
    value = wire.ActionDeadLetter(
        None, None, None, None, None, UNREADABLE, why, 0, wire.instant(tx.now), "poison", *[None] * 6
    )
    tx.emit(wire.MESSAGE_EVENT, 0, ROOM, wire.message(wire.DEAD_TOPIC, None, value))
    return True


def _trace(known: dict[str, Any]) -> str:
    found = known.get("trace_id")
    return found[:200] if isinstance(found, str) and found else f"act-{secrets.token_hex(8)}"


def _text(known: dict[str, Any], name: str) -> str | None:
    found = known.get(name)
    return found if isinstance(found, str) and 0 < len(found) <= MAX_DEVICE_ID else None


def _number(known: dict[str, Any], name: str) -> int | None:
    found = known.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MAX_NUMBER else None
