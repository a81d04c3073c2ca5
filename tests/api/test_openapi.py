"""The description fits the door: every route is in it and on the page, hot ones with the schema of their own types."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from tests.api.serving import settings_for
from ulak import Ulak
from ulak.http.app import Door
from ulak.http.caller import Needs
from ulak.http.problems import PATTERNS

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text(encoding="utf-8")
DOOR = Door(Ulak(settings=settings_for()))
DOCUMENT = DOOR.api.openapi()
OPERATIONS = [(method.upper(), path) for path, found in DOCUMENT["paths"].items() for method in found]
HOT = [route for part in DOOR.parts for route in part.hot]
SCOPES = DOOR.scopes.texts
# They were there before the rule, or are a contract with other systems, and keep their words.
OLDER_LISTS = {
    "/api/actions/messages", "/api/jobs", "/api/dead", "/api/events", "/api/notifications", "/api/inbox/{recipient}",
}  # fmt: skip


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_route_is_documented(method, path):
    assert f"`{method} {path}`" in PAGE


@pytest.mark.parametrize("route", HOT, ids=lambda route: route.path)
def test_a_hot_route_is_described_by_its_own_types(route):
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    template = "#/components/schemas/{name}"
    is_model = isinstance(route.response, type) and issubclass(route.response, BaseModel)  # FastAPI's own, then
    types = [route.request] if is_model else [route.request, route.response]
    (asked, *own), components = msgspec.json.schema_components(types, ref_template=template)
    (answered,) = own or [{"$ref": template.format(name=route.response.__name__)}]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == asked
    assert operation["responses"][str(route.status)]["content"]["application/json"]["schema"] == answered
    assert not is_model or route.response.__name__ in DOCUMENT["components"]["schemas"]
    described = DOCUMENT["components"]["schemas"]
    for name in components.keys() - {one.request.__name__ for one in HOT if one.required}:
        assert described[name] == components[name]


@pytest.mark.parametrize("route", [one for one in HOT if one.required], ids=lambda route: route.path)
def test_fields_that_the_decoder_leaves_to_us_are_required_and_not_null(route):
    (_, components) = msgspec.json.schema_components([route.request], ref_template="#/components/schemas/{name}")
    name = route.request.__name__
    described = DOCUMENT["components"]["schemas"][name]
    assert described["required"] == list(route.required)
    for field, schema in described["properties"].items():
        if field in route.required:
            assert "anyOf" not in schema
            assert "default" not in schema
        else:
            assert schema == components[name]["properties"][field]


def test_every_operation_but_health_may_fail_with_a_500():
    without = {
        path
        for path, methods in DOCUMENT["paths"].items()
        for operation in methods.values()
        if "500" not in operation["responses"]
    }
    assert without == {"/healthz", "/readyz"}


def test_the_headers_of_a_hot_route_are_described():
    parameter, prefer = DOCUMENT["paths"]["/api/notifications"]["post"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("Idempotency-Key", "header", False)
    assert parameter["schema"]["maxLength"] == 255
    assert (prefer["name"], prefer["schema"].keys() & {"minLength", "maxLength"}) == ("Prefer", set())


@pytest.mark.parametrize("route", HOT, ids=lambda route: route.path)
def test_the_examples_of_a_hot_route_are_acceptable(route):
    for example in route.examples.values():
        msgspec.convert(example, route.request, strict=True)


@pytest.mark.parametrize("route", HOT, ids=lambda route: route.path)
def test_a_hot_route_needs_a_known_scope(route):
    assert route.scope in SCOPES


def lists():
    """Every GET that answers several things: its path, the names in its answer, and those of its query."""
    for path, found in DOCUMENT["paths"].items():
        content = found.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        answer = DOCUMENT["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        query = {one["name"] for one in found.get("get", {}).get("parameters", ()) if one["in"] == "query"}
        if "limit" in query or {"items", "next"} <= set(answer.get("properties", ())):
            yield path, set(answer.get("properties", ())), query


def tags_of(path):
    return DOCUMENT["paths"][path]["get"]["tags"]


def test_a_list_has_items_and_next_which_goes_back_as_after():
    # The answers of changes are dicts that FastAPI does not describe.
    found = [one for one in lists() if one[0] not in OLDER_LISTS and "changes" not in tags_of(one[0])]
    assert [path for path, names, _ in found if not {"items", "next"} <= names] == []
    assert [path for path, _, query in found if {"before", "cursor"} & query] == []
    assert [path for path, _, query in found if "limit" in query and "after" not in query] == ["/api/dead/causes"]


def scopes_of(dependant):
    own = [dependant.call.scope] if isinstance(dependant.call, Needs) else []
    return own + [scope for each in dependant.dependencies for scope in scopes_of(each)]


def routes_of(router):
    for route in router.routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "routes") or hasattr(route, "original_router"):
            yield from routes_of(getattr(route, "original_router", route))


def test_every_route_of_the_api_asks_for_a_scope():
    open_routes = {route.path for route in routes_of(DOOR.api) if not scopes_of(route.dependant)}
    signed = {path for part in DOOR.parts for _, path in part.signed}
    pages = {path for path in open_routes if path == "/" or path.startswith("/console/")}  # they ask as their reader
    assert open_routes - signed - pages == {"/healthz", "/readyz"}


def test_every_answer_to_a_mistake_is_described():
    for path, found in DOCUMENT["paths"].items():
        for operation in found.values():
            assert "422" not in operation["responses"], path
            assert "503" in operation["responses"], path


def test_every_scope_is_documented():
    assert [scope for scope in SCOPES if f"`{scope}`" not in PAGE] == []


def patterns_of(part):
    if isinstance(part, dict):
        yield from [part["pattern"]] if isinstance(part.get("pattern"), str) else []
        part = list(part.values())
    for inner in part if isinstance(part, list) else []:
        yield from patterns_of(inner)


def test_every_pattern_has_its_sentence():
    assert set(patterns_of(DOCUMENT)) == set(PATTERNS)
