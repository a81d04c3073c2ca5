"""The document's samples are read and written as they stand, and every schema says what is enforced."""

from __future__ import annotations

import msgspec
import pytest

from ulak.actions.wire import events as wire
from ulak.actions.wire import request, schemas
from ulak.errors import Invalid, NotFound

EXECUTED_SAMPLE = {
    "event": "action.executed.v1",
    "meta": {
        "schema_version": 1,
        "trace_id": "act-9f3f...",
        "producer_service": "action-executor-service",
        "produced_at": "2026-03-12T20:55:10.100Z",
        "process_ms": 42,
    },
    "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
    "data": {
        "group_id": 12,
        "rule_id": 114,
        "action_plan_id": 21,
        "step_order": 1,
        "channel_type": "push",
        "delivery_status": "sent",
        "provider_message_id": "fcm:abc123",
    },
    "error": None,
}
FAILED_SAMPLE = {
    "event": "action.failed.v1",
    "meta": {
        "schema_version": 1,
        "trace_id": "act-9f3f...",
        "producer_service": "action-executor-service",
        "produced_at": "2026-03-12T20:55:10.300Z",
        "process_ms": 58,
    },
    "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
    "data": {"group_id": 12, "rule_id": 114, "action_plan_id": 21, "step_order": 2, "channel_type": "email"},
    "error": {
        "failed_stage": "action_execute",
        "error_code": "SMTP_TIMEOUT",
        "error_message": "mail provider timeout",
        "retryable": True,
        "failed_at": "2026-03-12T20:55:10Z",
    },
}


@pytest.mark.parametrize(
    ("sample", "shape"), [(EXECUTED_SAMPLE, wire.ActionExecuted), (FAILED_SAMPLE, wire.ActionFailed)]
)
def test_the_documents_sample_is_read_and_written_field_for_field(sample, shape):
    assert msgspec.to_builtins(msgspec.convert(sample, shape)) == sample


@pytest.mark.parametrize("event", list(schemas.EVENTS))
def test_every_event_has_a_schema_that_stands_alone(event):
    schema = schemas.schema_of(event)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["type"] == "object"
    assert all(reference in schema["$defs"] for reference in _references(schema))


def _references(value):
    if isinstance(value, dict):
        yield from [value["$ref"].rpartition("/")[2]] if "$ref" in value else []
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_an_unknown_event_names_those_that_there_are():
    with pytest.raises(NotFound, match=r"action\.executed\.v1"):
        schemas.schema_of("action.eaten.v1")


def test_a_request_needs_a_plan_and_an_evaluation_and_nothing_else():
    asked = request.decode_request(b'{"data": {"action_plan_id": 21, "evaluation_key": "e-1"}}')
    run = request.to_run(asked, 7, 1000)
    assert (run.plan_id, run.evaluation_key, run.device_id, run.critical) == (21, "e-1", None, False)
    assert run.trace_id.startswith("act-")


def test_what_the_results_need_is_kept_from_the_request():
    asked = request.decode_request(
        {
            "event": "action.execute.requested.v1",
            "meta": {"trace_id": "act-9", "schema_version": 1, "somebodys_note": True},
            "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
            "data": {
                "action_plan_id": 21,
                "evaluation_key": "e-1",
                "group_id": 12,
                "rule_id": 114,
                "variables": {"level": 3},
                "language": "tr",
                "critical": True,
            },
        }
    )
    run = request.to_run(asked, 7, 1000)
    assert (run.trace_id, run.device_id, run.stream_id) == ("act-9", "400000011D081B70", 9823412)
    assert (run.group_id, run.rule_id, run.variables, run.language, run.critical) == (
        12,
        114,
        '{"level":3}',
        "tr",
        True,
    )


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"{}", {"data", "data.action_plan_id", "data.evaluation_key"}),
        (b'{"data": {}}', {"data.action_plan_id", "data.evaluation_key"}),
        (b'{"data": {"action_plan_id": "x", "evaluation_key": ""}}', {"data.action_plan_id", "data.evaluation_key"}),
        (
            b'{"data": {"action_plan_id": 0, "evaluation_key": "e", "colour": 1}}',
            {"data.action_plan_id", "data.colour"},
        ),
        (
            b'{"context": {"device_id": "' + b"a" * 22 + b'"}, "data": {"action_plan_id": 1, "evaluation_key": "e"}}',
            {"context.device_id"},
        ),
        (b'{"event": "x", "data": {"action_plan_id": 1, "evaluation_key": "e"}}', {"event"}),
        (b'{"data": {"action_plan_id": 1, "evaluation_key": "a\\u0000b"}}', {"data.evaluation_key"}),
        (b'{"data": {"action_plan_id": 1, "evaluation_key": "ends\\n"}}', {"data.evaluation_key"}),
        (
            (
                b'{"meta": {"trace_id": "a\\u2028b"}, "context": {"device_id": "D\\n"}, '
                b'"data": {"action_plan_id": 1, "evaluation_key": "e", "language": "tr\\n"}}'
            ),
            {"meta.trace_id", "context.device_id", "data.language"},
        ),
        (b"[]", {""}),
        (b"{", {""}),
    ],
)
def test_every_wrong_field_of_a_request_is_named(body, fields):
    with pytest.raises(Invalid) as caught:
        request.decode_request(body)
    assert {field for field, _ in caught.value.fields} == fields


def test_variables_that_are_too_large_are_refused_by_name():
    asked = request.decode_request(
        {"data": {"action_plan_id": 1, "evaluation_key": "e", "variables": {"text": "x" * 70_000}}}
    )
    with pytest.raises(Invalid) as caught:
        request.to_run(asked, 1, 1)
    assert caught.value.fields[0][0] == "data.variables"
