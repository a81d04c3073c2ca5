"""Hot routes: the few that take most of the load. They skip FastAPI and are listed in its OpenAPI all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from fastapi import APIRouter

from ulak import complaint
from ulak.access.caller import Caller
from ulak.errors import Invalid
from ulak.http.failure import Headers, invalid_from
from ulak.http.uvicorn_shortcuts import answer_whole, body_at_hand

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Answers the status that it has sent: so nobody has to wrap `send` to count it.
Endpoint = Callable[[Scope, Receive, Send, Caller], Awaitable[int]]


class Mark(Protocol):
    """Returns the headers of a path. On behalf of a caller who was not admitted it reads nothing from the store."""

    def __call__(self, path: str, *, admitted: bool) -> Awaitable[Headers]: ...


JSON_HEADERS: Headers = [(b"content-type", b"application/json")]


@dataclass(frozen=True, slots=True)
class HotRoute:
    """A method and a path. `request` (None: no body) and `response` are msgspec types, for the OpenAPI schema too.

    `response` may also be a pydantic model that a route of FastAPI answers with.

    The path may have parameters, `/tasks/{id}/accept`: the endpoint finds them in `scope["path_params"]`.

    `headers` are those that may be sent besides, each with what it is for. `required` names fields that the decoder
    leaves optional, so that one refusal can name all that is wrong.
    """

    method: str
    path: str
    endpoint: Endpoint
    scope: str
    summary: str
    request: Any
    response: Any
    status: int = 202
    description: str = ""
    tag: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    examples: dict[str, Any] = field(default_factory=dict)
    statuses: tuple[int, ...] = (400, 401, 403, 413, 429, 500, 503)
    max_body_bytes: int | None = None
    required: tuple[str, ...] = ()
    body_required: bool = True


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes that a room adds to the door.

    `close` ends what its requests have left running, when the door closes; `leave` ends streams that have no end of
    their own, when the server stops listening.

    `takes_work` names the (method, path) of what hands in work, as the hot routes do, and may wait for capacity.
    `signed` names the (method, path) of what a signature opens instead of a key: the route itself checks that.
    `marks` gives headers to every answer below a path, refusals too: (the path, a function of the whole one).
    `scope` says what a room's scope opens; `by_name`, that only a key that names it has it.
    """

    hot: tuple[HotRoute, ...] = ()
    routers: tuple[APIRouter, ...] = ()
    takes_work: tuple[tuple[str, str], ...] = ()
    signed: tuple[tuple[str, str], ...] = ()
    marks: tuple[tuple[str, Mark], ...] = ()
    close: Callable[[], None] = lambda: None
    leave: Callable[[], None] = lambda: None
    scope: str = ""
    by_name: bool = False


async def read_body(receive: Receive) -> bytes:
    """The whole body. Its size is bounded by the `receive` that is handed in."""
    at_hand = body_at_hand(receive)
    if at_hand is not None:
        return at_hand
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise Invalid("the connection was closed before the body was complete")
    return body


def idempotency_key(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"idempotency-key":
            return str(value, "latin-1")
    return None


async def reply(send: Send, status: int, body: bytes, headers: Headers = JSON_HEADERS) -> int:
    if answer_whole(send, status, headers, body):
        return status
    await send(
        {"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]}
    )
    await send({"type": "http.response.body", "body": body})
    return status


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode a body into its type; a refusal names every field that does not fit."""
    try:
        found = decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise invalid_from(body, decoder.type) from error
    check_keys(body)
    return found


def check_keys(body: bytes) -> None:
    """Raise Invalid for a body in which an object has a key twice."""
    if repeated := complaint.of_repeated(body):
        raise Invalid(f"the body has a key twice: {', '.join(name for name, _ in repeated)}", fields=repeated)
