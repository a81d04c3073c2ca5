"""From JSON, or from another room's message, to a request; one Invalid names every field that is wrong."""

from __future__ import annotations

import msgspec
from msgspec.structs import astuple

from ulak import codec, complaint, faults
from ulak.channels.message import NewMessage
from ulak.clock import maybe_datetime
from ulak.errors import Invalid
from ulak.notify import decide
from ulak.notify.model import Request

_decoder = msgspec.json.Decoder(Request)
_FIELDS = len(msgspec.structs.fields(Request))


def decode_request(body: bytes, known_types: frozenset[str]) -> Request:
    """A request from JSON; one Invalid names every field that is wrong."""
    try:
        request = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _refusal(body, known_types) from None
    if not codec.has_no_more_keys(body, _number_of_keys(request)) and (repeated := complaint.of_repeated(body)):
        raise decide.refusal(repeated)
    return request


def _number_of_keys(request: Request) -> int:
    """Keys that the body had for certain: a null looks like a field that was left out."""
    number = _FIELDS - astuple(request).count(None)
    if request.metadata:
        number += codec.number_of_keys(request.metadata)
    if request.variables or request.payload or request.target_meta:
        number += codec.number_of_keys([request.variables, request.payload, request.target_meta])
    return number


def _refusal(body: bytes, known_types: frozenset[str]) -> Invalid:
    try:
        document = codec.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = faults.of_json(body, error)
        return Invalid(f"the body is not JSON: {why}", fields=[("", "must be a JSON object")])
    return decide.refusal(decide.explain(document, known_types))


def request_of(message: NewMessage) -> Request:
    """Of another room's message."""
    return Request(
        notification_type=message.notification_type,
        recipient=message.recipient,
        subject=message.subject,
        body=message.body,
        priority=message.priority,
        metadata=message.metadata,
        expires_at=maybe_datetime(message.expires_at),
        template=message.template,
        variables=message.variables,
        language=message.language,
        timeout_seconds=message.timeout_seconds,
        target_meta=message.target_meta,
    )


def check_key(key: str) -> None:
    if not 0 < len(key) <= 255:
        why = "must have 1 to 255 characters"
        raise Invalid(f"Idempotency-Key {why}", fields=[("Idempotency-Key", why)])
