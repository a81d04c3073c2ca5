"""Gives FastAPI's own refusals (validation, no such route) the same shape as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ulak.errors import Error, Invalid
from ulak.http.failure import Problem, encoded

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
    fields = [(_place(details["loc"]), details["msg"]) for details in error.errors()]
    return await _failed(request, Invalid("the request is not as expected", fields=fields))


def _place(location: Sequence[Any]) -> str:
    """`("query", "limit")` is the field `limit`; the whole body is `body`."""
    return ".".join(map(str, location[1:])) or "body"


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    body = msgspec.json.encode(Problem(code, f"{error.detail}; /docs lists the routes"))
    return Response(body, error.status_code, error.headers, "application/json")
