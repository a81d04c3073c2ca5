"""Requests made from the OpenAPI description, right and wrong ones: every answer is described, none is our failure.

The key has every scope, and every second request about a thing is about one that exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.serving import serving, settings_for
from ulak import Ulak
from ulak.http.app import Door

EXAMPLES = 8
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DESCRIPTION = Door(Ulak(settings=settings_for())).api.openapi()
# A stream has no end to wait for.
PATHS = {path: found for path, found in DESCRIPTION["paths"].items() if not path.endswith("/stream")}
SCHEMA = schemathesis.openapi.from_dict({**DESCRIPTION, "paths": PATHS})
OPERATIONS = {
    f"{each.method.upper()} {each.path}": each for each in (found.ok() for found in SCHEMA.get_all_operations())
}


# Where a path leads to a thing: how that is made, and its field in the answer. Before it what its body refers to.
PLAN = {"name": "plan", "steps": [{"step_order": 1, "channel_type": "email", "body": "text"}]}
EMAIL = {"channel_type": "email"}
MADE = {
    "/api/keys/{id}": [("POST", "/api/keys", {"name": "one", "scopes": ["look"]}, "id")],
    "/api/jobs/{id}": [("POST", "/api/jobs", {"kind": "mail.send"}, "id")],
    "/api/kinds/{kind}": [("PATCH", "/api/kinds/notify.sms", {"paused": False}, "kind")],
    "/api/notifications/{identifier}": [
        ("POST", "/api/notifications", {"notificationType": "SMS", "recipient": "ada", "body": "text"}, "id")
    ],
    "/api/actions/profiles/{identifier}": [("POST", "/api/actions/profiles", {"name": "Ada"}, "id")],
    "/api/actions/channels/{identifier}": [
        ("POST", "/api/actions/profiles", {"name": "Ada"}, "profile_id"),
        ("POST", "/api/actions/channels", {**EMAIL, "target": "ada@example.org"}, "id"),
    ],
    "/api/actions/plans/{identifier}": [("POST", "/api/actions/plans", PLAN, "id")],
    "/api/actions/routes/{identifier}": [
        ("POST", "/api/actions/profiles", {"name": "Ada"}, "recipient_profile_id"),
        ("POST", "/api/actions/plans", PLAN, "action_plan_id"),
        ("POST", "/api/actions/routes", {**EMAIL, "step_order": 1}, "id"),
    ],
    "/helpers/{helper}": [("PUT", "/helpers/ada", {"name": "Ada", "latitude": 41.0, "longitude": 29.0}, "id")],
    "/tasks/{task}": [
        ("POST", "/tasks", {"requesterId": "ayse", "category": "market", "latitude": 41.0, "longitude": 29.0}, "id")
    ],
}


def make_thing(address, headers, path):
    """The parameter of a path, and the id of a new thing that it leads to. What it needs is made first."""
    prefix = path[: path.find("}") + 1]
    if prefix not in MADE:
        return {}
    *needed, (method, place, body, field) = MADE[prefix]

    def make(method, place, body, field):
        answer = requests.request(method, address + place, json=body, headers=headers, timeout=30)
        assert answer.ok, answer.text
        return str(answer.json()[field])

    ids = {name: int(make(*one, "id")) for *one, name in needed}
    return {prefix[prefix.find("{") + 1 : -1]: make(method, place, {**body, **ids}, field)}


def checks_of(name):
    """A feed answers 503 until its first sync, and says so; of every other route a 5xx is a failure."""
    return [check for check in CHECKS if check is not not_a_server_error or " /api/v1/" not in name]


@pytest.fixture(scope="module")
def door():
    """Address and headers. The server has a thread of its own, since the requests are made by a blocking client."""
    ready, done, found = threading.Event(), asyncio.Event(), []

    async def serve():
        async with serving(work=False, **{"spine.capacity": 1_000_000}) as served:
            key = await served.make_key(*served.door.scopes.texts)
            found.extend([served.address, {"Authorization": f"Bearer {key}"}, asyncio.get_running_loop()])
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    yield found[:2]
    found[2].call_soon_threadsafe(done.set)
    thread.join()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", OPERATIONS)
def test_generated_requests_are_answered_as_described(door, name, mode):
    (address, headers), operation = door, OPERATIONS[name]
    known = make_thing(address, headers, operation.path)
    number = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        if known and next(number) % 2:
            case.path_parameters = {**case.path_parameters, **known}
        case.call_and_validate(base_url=address, headers=headers, checks=checks_of(name))

    with contextlib.suppress(Unsatisfiable):  # there is no wrong request to a route that takes nothing
        run()
