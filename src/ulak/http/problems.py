"""Gives FastAPI's own refusals (validation, no such route) the same shape as ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from ulak import complaint
from ulak.errors import Error, Invalid
from ulak.http.failure import Problem, encoded
from ulak.http.hot_routes import HotRoute
from ulak.http.paths import METHODS, Paths

# What a pattern of ours means: nobody should have to read one.
PATTERNS = {
    r"^[0-9]{1,19}$": "must be an id or a cursor: a whole number of at most 19 digits",
    r"^[0-9]{0,15}$": "must be the id of an event: a whole number of at most 15 digits",
    r"^[0-9]{1,15}-[0-9]{1,19}$": "must be the `next` of the page before",
    r"^[0-9]{1,15}-[0-9]{1,9}$": "must be the id of a message that waits, like 1200-3",
    r"^[A-Za-z0-9._-]{1,249}$": "must be a topic: 1 to 249 letters, digits and . _ -",
    r"^[0-9a-f]{10}$": "must be the id of a key: ten of 0-9 and a-f, as `ulak keys list` shows it",
    r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$": (
        "must be a file name of at most 100 letters, digits and . _ -, not a path, and not begin with a dot"
    ),
    r"^[A-Za-z0-9._:@-]{1,100}$": "must be 1 to 100 letters, digits and . _ : @ -",
    r"^[A-Za-z0-9._:@-]{1,100}$(?!\n)": "must be 1 to 100 letters, digits and . _ : @ -",
    r'^[^"\\\x00-\x1f\x7f]+$(?!\n)': "must have no quotes, backslashes and control characters",
    r"^[0-9a-f]{32}$": "must be a name of 32 digits 0-9 and a-f",
    r"^([0-9]{1,19}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$": "must be the id of a job: a whole number or a UUID",
    r"^[^\x00-\x1f\x7f]+$": "must not be empty and have no control characters",
    r"^[^\x00-\x1f\x7f]+$(?!\n)": "must not be empty and have no control characters",
    r"^[^\x00-\x1f\x7f\x85\u2028\u2029]+$(?!\n)": "must be one line without control characters, and not empty",
}
_CODES = {404: "not_found", 405: "method_not_allowed", 415: "unsupported"}
_UNREADABLE = "can't be read as JSON: it is not UTF-8, is nested too deeply, or has a number of too many digits"


def answer_with_problems(api: FastAPI, hot: Iterable[HotRoute]) -> None:
    """`hot` are routes that FastAPI does not know: their methods are allowed too."""
    in_front = Paths((route.method, route.path, route) for route in hot)

    async def not_valid(request: Request, error: Exception) -> Response:
        # A path parameter may have taken the last word of another route for an id.
        methods = in_front.methods(request.url.path) or _methods_of_word(request)
        if methods and "{" in request.scope["route"].path:
            return _method_not_allowed(methods)
        return await _not_valid(request, error)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        methods = in_front.methods(request.url.path)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED or (
            error.status_code == HTTPStatus.NOT_FOUND and methods
        ):
            return _method_not_allowed(methods | (_methods_of_word(request) or _methods(request)))
        if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's own: its parser gave the body up
            return await _failed(
                request, Invalid(f"the request is not as expected: body {_UNREADABLE}", fields=[("body", _UNREADABLE)])
            )
        return _told_status(error.status_code, error.detail, error.headers)

    api.add_exception_handler(Error, _failed)
    api.add_exception_handler(RequestValidationError, not_valid)
    api.add_exception_handler(HTTPException, refused)
    api.add_exception_handler(Exception, _failed)


def _methods_of_word(request: Request) -> set[str]:
    """Every method of a path without parameters; none if there is no such path. Such a path is not an id."""
    path = request.url.path
    return set() if "{" in path else {method.upper() for method in request.app.openapi()["paths"].get(path, ())}


def _methods(request: Request) -> set[str]:
    """Every method that some route has at this path; Starlette names those of the first route only."""
    return {
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    }


def _method_not_allowed(methods: set[str]) -> Response:
    allowed = ", ".join(sorted(methods))
    return _told_status(405, f"the method is not allowed here; there are: {allowed}", {"allow": allowed})


async def _failed(_: Request, error: Exception) -> Response:
    status, body, headers = encoded(error)
    return Response(body, status, headers, "application/json")


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _failed(request, to_invalid(error))


def to_invalid(error: RequestValidationError) -> Invalid:
    """FastAPI's complaint as ours; a parameter that a dependency reads too is complained of once."""
    fields = list(dict.fromkeys(_told(details) for details in error.errors()))
    return Invalid(f"the request is not as expected: {' '.join(fields[0])}", fields=fields)


def _told(details: dict[str, Any]) -> tuple[str, str]:
    place, kind = _place(details["loc"]), details["type"]
    if kind == "json_invalid":  # its place is a number of characters
        return "body", f"must be JSON; at character {details['loc'][-1]}: {details['ctx']['error']}"
    if kind == "string_pattern_mismatch":
        return place, PATTERNS[details["ctx"]["pattern"]]
    if kind.startswith(("datetime", "timezone")) or complaint.INSTANT in details["msg"]:
        return place, complaint.INSTANT
    if kind.startswith("uuid"):
        return place, complaint.UUID
    return place, "is not a field here" if kind == "extra_forbidden" else complaint.of_validator(details["msg"])


def _place(location: Sequence[Any]) -> str:
    """`("query", "limit")` is the field `limit`; the whole body is `body`."""
    return ".".join(map(str, location[1:])) or "body"


def _told_status(status: int, detail: str, headers: Mapping[str, str] | None) -> Response:
    body = msgspec.json.encode(Problem(_CODES.get(status, "refused"), f"{detail}; /docs lists the routes"))
    return Response(body, status, headers, "application/json")
