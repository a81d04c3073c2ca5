"""The OpenAPI document: FastAPI's own, with the hot routes in it and with our answers to what goes wrong."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ulak.http.caller import SCOPES
from ulak.http.failure import schema as problem_schema
from ulak.http.guard import PROBES
from ulak.http.hot import HotRoute

MOST_HEADER = 255
_REF = "#/components/schemas/{name}"
_PROBLEM = {"content": {"application/json": {"schema": {"$ref": _REF.format(name="Problem")}}}}
_USUAL = (400, 401, 403, 404, 409, 413, 429, 500, 503)
_ABOUT = """\
Ids are text, instants carry a time zone, names are camelCase (compute's are snake_case). Every refusal is
`{"error", "message"}`, and `fields` when the input is at fault, each named as it was sent. On loopback no key is
needed, except to run scripts; anywhere else send `Authorization: Bearer ulak_…`.

Scopes: """


def describe(api: FastAPI, hot: list[HotRoute]) -> None:
    """Make `api.openapi()` tell of everything that the door answers."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(_document(api, hot))
        return made

    api.openapi = openapi  # type: ignore[method-assign]


def _document(api: FastAPI, hot: list[HotRoute]) -> dict[str, Any]:
    about = _ABOUT + "; ".join(f"`{name}`: {text}" for name, text in SCOPES.items()) + "."
    document = get_openapi(title="Ulak", version="1", description=about, routes=api.routes)
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        components.pop(name, None)
    components.update(problem_schema())
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _settle_answers(operation, () if path in PROBES else _USUAL)
    for route in hot:
        document["paths"].setdefault(route.path, {})[route.method.lower()] = _operation(route)
        components.update(_components(route))
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"key": []}, {}]
    return document


def _settle_answers(operation: dict[str, Any], statuses: Iterable[int]) -> None:
    """FastAPI announces 422, and we answer 400."""
    operation["responses"].pop("422", None)
    operation["responses"].update(_problems(statuses or (503,)))


def _problems(statuses: Iterable[int]) -> dict[str, Any]:
    return {str(status): {"description": HTTPStatus(status).phrase, **_PROBLEM} for status in statuses}


def _components(route: HotRoute) -> dict[str, Any]:
    _, found = msgspec.json.schema_components([route.request, route.response], ref_template=_REF)
    return found


def _operation(route: HotRoute) -> dict[str, Any]:
    (asked, answered), _ = msgspec.json.schema_components([route.request, route.response], ref_template=_REF)
    content: dict[str, Any] = {"schema": asked}
    if route.examples:
        content["examples"] = {name: {"value": value} for name, value in route.examples.items()}
    return {
        "summary": route.summary,
        "description": f"{route.description} Needs the scope `{route.scope}`.".strip(),
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_')}",
        "tags": [route.tag] if route.tag else [],
        "parameters": [_header(name, text) for name, text in route.headers.items()],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            str(route.status): {
                "description": HTTPStatus(route.status).phrase,
                "content": {"application/json": {"schema": answered}},
            },
            **_problems(route.statuses),
        },
    }


def _header(name: str, text: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": MOST_HEADER, "description": text}
    return {"name": name, "in": "header", "required": False, "schema": schema}
