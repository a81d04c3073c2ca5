"""A decoder's or validator's complaint about a field, as a sentence that says what the field must be.

Bounds are written in groups of three digits: they read better, and masking takes a long number for a telephone's.
"""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from ulak import codec

MAX_REPEATED = 20  # keys that one refusal names
INSTANT = "must be an instant with a time zone, like 2027-01-01T09:00:00Z"
UUID = "must be a UUID, like 0ca0d6db-9140-8000-8000-0000756c616b"
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "datetime": "an instant",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
# Of pydantic's words, those that have plainer ones above; a phrase stands before any that it begins with.
_PLAIN = {
    "a valid dictionary or object to extract fields from": "an object",
    "a valid dictionary": "an object",
    "a valid list": "a list",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": "text",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "more than",
}
_PLAINLY = re.compile(f"({'|'.join(_PLAIN)})(?:, (?:unable|got|but got) .*)?")
_EXPECTED = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`)?(?:( of length)? ([<>]=?) ([\d.e+-]+))?")
_NUMBER = re.compile(r"(?<![\w.])\d{4,}(?:\.0)?(?![\w.])")


def of_repeated(body: bytes) -> list[tuple[str, str]]:
    """Of a JSON body in which an object has a key twice."""
    return [(f"{key:.100}", "is given more than once") for key in codec.repeated_keys(body)[:MAX_REPEATED]]


def of_decoder(reason: str, wanted: Any = None) -> str:
    """From msgspec's words; `wanted` is the field's type, which knows the choices that it does not tell."""
    if reason.startswith("Invalid enum value"):
        return f"must be one of {', '.join(map(str, _choices(wanted)))}"
    if "RFC3339" in reason or "timezone" in reason:
        return INSTANT
    if reason == "Number out of range":
        return "must be a number that is not too large"
    found = _EXPECTED.fullmatch(reason)
    return reason if found is None else _expected(*found.groups())


def of_validator(reason: str) -> str:
    """From pydantic's words: `Input should be …`, `String should have …`."""
    if reason == "Field required":
        return "is required"
    plain = _PLAINLY.sub(lambda found: _PLAIN[found[1]], reason)
    return grouped(re.sub(r"^\w+ should ", "must ", plain))


def grouped(text: str) -> str:
    return _NUMBER.sub(lambda found: f"{int(float(found[0])):,}", text)


def _expected(wanted: str, got: str | None, length: str | None, bound: str | None, number: str | None) -> str:
    words = " or ".join(_WORDS.get(word, word) for word in wanted.split(" | "))
    if got is not None:
        return f"must be {words}, not {_WORDS.get(got, got)}"
    if bound is None or number is None:
        return f"must be {words}"
    limit = f"{_BOUNDS[bound]} {grouped(number)}"
    if not length:
        return f"must be {words}, {limit}"
    return f"must be {words} of {limit} {'items' if 'array' in wanted else 'characters'}"


def _choices(wanted: Any) -> list[Any]:
    if get_origin(wanted) is Literal:
        return list(get_args(wanted))
    return [choice for part in get_args(wanted) for choice in _choices(part)]
