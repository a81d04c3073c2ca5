"""Requests made from the OpenAPI description, right and wrong ones: every answer is described, none is our failure."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
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


def checks_of(name):
    """A feed answers 503 until its first sync, and says so; of every other route a 5xx is a failure."""
    return [check for check in CHECKS if check is not not_a_server_error or " /api/v1/" not in name]


@pytest.fixture(scope="module")
def address():
    """A server in a thread of its own, since the generated requests are made by a blocking client."""
    ready, done, found = threading.Event(), asyncio.Event(), []

    async def serve():
        async with serving(work=False, **{"spine.capacity": 1_000_000}) as served:
            found.extend([served.address, asyncio.get_running_loop()])
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    yield found[0]
    found[1].call_soon_threadsafe(done.set)
    thread.join()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", OPERATIONS)
def test_generated_requests_are_answered_as_described(address, name, mode):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[name].as_strategy(generation_mode=mode))
    def run(case):
        case.call_and_validate(base_url=address, checks=checks_of(name))

    with contextlib.suppress(Unsatisfiable):  # there is no wrong request to a route that takes nothing
        run()
