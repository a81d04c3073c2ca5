"""From bytes or a document to a request that can be run, with every field named that is wrong."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from ulak import codec, complaint, faults
from ulak.actions.model import ActionRun, RunState
from ulak.actions.wire import events as wire
from ulak.errors import Invalid

MAX_VARIABLES_BYTES = 65_536
MAX_LIMIT = 1000
WHAT = "the request"

_decoder = msgspec.json.Decoder(wire.ActionRequest)


def decode_request(given: bytes | dict[str, Any]) -> wire.ActionRequest:
    """Raise one Invalid that names every field that is wrong."""
    try:
        if isinstance(given, dict):
            return msgspec.convert(given, wire.ActionRequest)
        request = _decoder.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _refused(given, error) from None
    if repeated := complaint.of_repeated(given):
        raise faults.refusal(WHAT, repeated)
    return request


def _refused(given: bytes | dict[str, Any], error: Exception) -> Invalid:
    document: Any = given
    if not isinstance(given, dict):
        try:
            document = codec.decode(given)
        except (msgspec.MsgspecError, ValueError, RecursionError) as broken:
            why = faults.of_json(given, broken)
            return Invalid(f"the body is not JSON: {why}", fields=[("", "must be a JSON object")])
    problems = faults.of_document(document, wire.ActionRequest)
    return faults.refusal(WHAT, problems or [("", str(error))])


def to_run(asked: wire.ActionRequest, identifier: int, now: int) -> ActionRun:
    """The run that a request asks for; its plan's version and weight are filled in when it is accepted."""
    data, context = asked.data, asked.context or wire.RequestContext()
    trace_id = asked.meta.trace_id if asked.meta is not None else None
    return ActionRun(
        identifier,
        data.evaluation_key,
        data.action_plan_id,
        0,
        RunState.ACCEPTED,
        trace_id or f"act-{random.getrandbits(64):016x}",
        context.device_id,
        context.stream_id,
        data.group_id,
        data.rule_id,
        data.language,
        bool(data.critical),
        encode_variables(data.variables, WHAT, "data.variables"),
        now,
    )


def encode_variables(variables: dict[str, Any] | None, what: str, field: str) -> str:
    """As they are kept; refused where they are too large or too deep."""
    if not variables:
        return "{}"
    text = codec.encode(variables)
    if len(text) > MAX_VARIABLES_BYTES:
        why = f"must take at most {MAX_VARIABLES_BYTES:,} bytes as JSON"
        raise faults.refusal(what, [(field, why)])
    try:
        codec.check_depth(text)
    except ValueError as error:
        raise faults.refusal(what, [(field, f"can't be kept: {error}")]) from None
    return text.decode()


def salvaged(given: bytes | dict[str, Any]) -> dict[str, Any]:
    """Return the fields that can still be read of a refused request, for the event that reports it."""
    try:
        document = given if isinstance(given, dict) else codec.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    parts = [document.get(name) for name in ("meta", "context", "data")]
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


def check_limit(limit: int) -> int:
    """Of a list's page."""
    if not 1 <= limit <= MAX_LIMIT:
        why = f"must be 1 to {MAX_LIMIT:,}"
        raise Invalid(f"limit {limit} is out of range; it {why}", fields=[("limit", why)])
    return limit
