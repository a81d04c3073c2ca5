"""The OpenAPI document: FastAPI's own, with the hot routes in it and with our answers to what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from ulak.access.caller import Scopes
from ulak.http.failure import schema as problem_schema
from ulak.http.guard import PROBES
from ulak.http.hot_routes import HotRoute

MAX_HEADER = 255
_NOT_WORD = re.compile(r"\W")
_PARAMETER = re.compile(r"{(\w+)}")
_REF = "#/components/schemas/{name}"
_PROBLEM = {"content": {"application/json": {"schema": {"$ref": _REF.format(name="Problem")}}}}
_USUAL = (400, 401, 403, 404, 409, 413, 429, 500, 503)
_ABOUT = """\
Ids are text, instants carry a time zone, names are camelCase (compute's are snake_case). Every refusal is
`{"error", "message"}`, and `fields` when the input is at fault, each named as it was sent. On loopback no key is
needed, except to run scripts; anywhere else send `Authorization: Bearer ulak_…`.

Scopes: """


def describe(api: FastAPI, hot: list[HotRoute], scopes: Scopes) -> None:
    """Make `api.openapi()` tell of everything that the door answers."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(_document(api, hot, scopes))
        return made

    api.openapi = openapi  # type: ignore[method-assign]


def _document(api: FastAPI, hot: list[HotRoute], scopes: Scopes) -> dict[str, Any]:
    about = _ABOUT + "; ".join(f"`{name}`: {text}" for name, text in scopes.texts.items()) + "."
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
    for route in hot:  # when all are there: a batch describes the same type without it
        if route.required:
            name = route.request.__name__
            components[name] = _with_required(components[name], route.required)
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
    return msgspec.json.schema_components(_types(route), ref_template=_REF)[1]


def _types(route: HotRoute) -> list[Any]:
    """Those that msgspec describes: a model of pydantic's is in FastAPI's own document."""
    is_model = isinstance(route.response, type) and issubclass(route.response, BaseModel)
    return [route.request] if is_model else [route.request, route.response]


def _with_required(schema: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    fields = dict(schema["properties"])
    for name in names:
        choices = [one for one in fields[name].get("anyOf", []) if one != {"type": "null"}]
        rest = {key: value for key, value in fields[name].items() if key not in {"anyOf", "default"}}
        fields[name] = {**rest, **(choices[0] if choices else {})}
    return {**schema, "properties": fields, "required": list(names)}


def _operation(route: HotRoute) -> dict[str, Any]:
    (asked, *own), _ = msgspec.json.schema_components(_types(route), ref_template=_REF)
    answered = own[0] if own else {"$ref": _REF.format(name=route.response.__name__)}
    content: dict[str, Any] = {"schema": asked}
    if route.examples:
        content["examples"] = {name: {"value": value} for name, value in route.examples.items()}
    body = {"requestBody": {"required": route.body_required, "content": {"application/json": content}}}
    return {
        "summary": route.summary,
        "description": f"{route.description} Needs the scope `{route.scope}`.".strip(),
        "operationId": f"{route.method.lower()}{_NOT_WORD.sub('_', route.path)}",
        "tags": [route.tag] if route.tag else [],
        "parameters": [
            *map(_in_path, _PARAMETER.findall(route.path)),
            *(_header(name, text) for name, text in route.headers.items()),
        ],
        **({} if route.request is None else body),
        "responses": {
            str(route.status): {
                "description": HTTPStatus(route.status).phrase,
                "content": {"application/json": {"schema": answered}},
            },
            **_problems(route.statuses),
        },
    }


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _header(name: str, text: str) -> dict[str, Any]:
    # A preference may be ignored, so none is too long.
    bounds = {} if name == "Prefer" else {"minLength": 1, "maxLength": MAX_HEADER}
    schema = {"type": "string", **bounds, "description": text}
    return {"name": name, "in": "header", "required": False, "schema": schema}
