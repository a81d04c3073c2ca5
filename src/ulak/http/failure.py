"""One table from errors to HTTP, and the few errors that only a door can have."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic.alias_generators import to_camel

from ulak import codec, errors, faults
from ulak.access.caller import Forbidden
from ulak.channels.receipts import Unproven
from ulak.masking import mask_text


class Unauthenticated(errors.Error):
    """This needs an API key: `ulak keys create` makes one; send it as a Bearer, or set client.key for commands."""


class BodyTooLarge(errors.TooLarge):
    """The body is larger than http.max_body_bytes, or than the route's own bound; send less at a time."""


class Stopping(errors.Unavailable):
    """This Ulak is stopping; ask another instance, or ask again when it is back."""


class Busy(errors.Unavailable):
    """Too many requests are in progress (http.max_concurrent_requests); try again shortly."""


# The first class that fits, from the error's own class upwards.
TABLE: dict[type[BaseException], tuple[int, str]] = {
    errors.Invalid: (400, "invalid"),
    Unauthenticated: (401, "unauthenticated"),
    Unproven: (401, "unauthenticated"),
    Forbidden: (403, "forbidden"),
    errors.NotFound: (404, "not_found"),
    errors.Conflict: (409, "conflict"),
    errors.Gone: (410, "gone"),
    errors.TooLarge: (413, "too_large"),
    errors.Refused: (429, "refused"),
    errors.Misconfigured: (500, "misconfigured"),
    errors.Unavailable: (503, "unavailable"),
    BaseException: (500, "internal"),
}
INTERNAL_MESSAGE = "Something went wrong here; the log has the details."
RETRY_AFTER_SECONDS = 1.0


class Field(msgspec.Struct):
    field: str
    message: str


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of every answer to a refused or failed request."""

    error: str
    message: str
    fields: list[Field] | None = None
    code: str | None = None


def answer_to(error: BaseException) -> tuple[int, Problem, dict[str, str]]:
    """Return status, body and extra headers. An unexpected error shows nothing of the inside."""
    status, code = next(TABLE[known] for known in type(error).__mro__ if known in TABLE)
    if code == "internal":
        return status, Problem(code, INTERNAL_MESSAGE), {}
    problem = Problem(code, mask_text(str(error)), _fields(error), getattr(error, "code", None))
    return status, problem, _headers(status, error)


def _fields(error: BaseException) -> list[Field] | None:
    if not isinstance(error, errors.Invalid) or isinstance(error, BodyTooLarge | Unproven):
        return None
    return [Field(name, mask_text(text)) for name, text in error.fields]


def _headers(status: int, error: BaseException) -> dict[str, str]:
    if status == 401:
        return {"www-authenticate": "Signature" if isinstance(error, Unproven) else "Bearer"}
    if isinstance(error, errors.Gone) and error.location is not None:
        return {"location": error.location}
    if status in {429, 503}:
        seconds = getattr(error, "retry_after_seconds", None) or RETRY_AFTER_SECONDS
        return {"retry-after": str(max(round(seconds), 1))}
    return {}


def encoded(error: BaseException) -> tuple[int, bytes, dict[str, str]]:
    status, problem, headers = answer_to(error)
    if isinstance(error, errors.Gone) and error.extra:
        return status, msgspec.json.encode({**msgspec.to_builtins(problem), **error.extra}), headers
    return status, msgspec.json.encode(problem), headers


def camel(error: errors.Invalid) -> errors.Invalid:
    """For a route whose wire is camelCase: the spine names its parameters as Python does."""
    return type(error)(str(error), fields=[(to_camel(name), text) for name, text in error.fields])


def invalid_from(body: bytes, wanted: type[msgspec.Struct]) -> errors.Invalid:
    """Name every field of a body that keeps it from being what is wanted."""
    try:
        document = codec.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = faults.of_json(body, error)
        return errors.Invalid(f"the body is not JSON: {why}; send a JSON object", fields=[("body", "must be JSON")])
    return faults.refusal("the request", [(name or "body", why) for name, why in faults.of_document(document, wanted)])


Headers = list[tuple[bytes, bytes]]


def raw(headers: dict[str, str]) -> Headers:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def schema() -> dict[str, Any]:
    """The JSON schema of a problem, for the OpenAPI document."""
    _, components = msgspec.json.schema_components([Problem, Field], ref_template="#/components/schemas/{name}")
    return components
