"""Gives FastAPI's own refusals (validation, no such route) the same shape as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ulak import complaint
from ulak.errors import Error, Invalid
from ulak.http.failure import Problem, encoded

# What a pattern of ours means: nobody should have to read one.
PATTERNS = {
    r"^[0-9]{1,19}$": "must be an id or a cursor: a whole number of at most 19 digits",
    r"^[0-9]{1,15}$": "must be the id of an event: a whole number of at most 15 digits",
    r"^[0-9a-f]{10}$": "must be the id of a key: ten of 0-9 and a-f, as `ulak keys list` shows it",
    r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$": (
        "must be a file name of at most 100 letters, digits and . _ -, not a path, and not begin with a dot"
    ),
    r"^[^\x00-\x1f\x7f]+$": "must not be empty and have no control characters",
}
_CODES = {404: "not_found", 405: "method_not_allowed", 415: "unsupported", 400: "invalid"}


def answer_with_problems(api: FastAPI) -> None:
    api.add_exception_handler(Error, _failed)
    api.add_exception_handler(RequestValidationError, _not_valid)
    api.add_exception_handler(HTTPException, _refused)
    api.add_exception_handler(Exception, _failed)


async def _failed(_: Request, error: Exception) -> Response:
    status, body, headers = encoded(error)
    return Response(body, status, headers, "application/json")


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = [_told(details) for details in error.errors()]
    return await _failed(request, Invalid("the request is not as expected", fields=fields))


def _told(details: dict[str, Any]) -> tuple[str, str]:
    place, kind = _place(details["loc"]), details["type"]
    if kind == "json_invalid":  # its place is a number of characters
        return "body", f"must be JSON; at character {details['loc'][-1]}: {details['ctx']['error']}"
    if kind == "string_pattern_mismatch":
        return place, PATTERNS[details["ctx"]["pattern"]]
    if kind.startswith("datetime"):
        return place, complaint.INSTANT
    if kind.startswith("uuid"):
        return place, "must be a UUID, like 0ca0d6db-9140-8000-8000-0000756c616b"
    return place, "is not a field here" if kind == "extra_forbidden" else complaint.of_validator(details["msg"])


def _place(location: Sequence[Any]) -> str:
    """`("query", "limit")` is the field `limit`; the whole body is `body`."""
    return ".".join(map(str, location[1:])) or "body"


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    body = msgspec.json.encode(Problem(code, f"{error.detail}; /docs lists the routes"))
    return Response(body, error.status_code, error.headers, "application/json")
