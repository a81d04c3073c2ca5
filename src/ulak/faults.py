"""Every field of a document that does not fit its type, by its dotted name: a decoder alone tells only the first."""

from __future__ import annotations

import re
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from ulak import complaint
from ulak.errors import Invalid

Problems = list[tuple[str, str]]

_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def of_json(body: bytes, error: Exception) -> str:
    """Return why a body is not JSON, from what a decoder without a type says: one with a type stops at other faults."""
    if _LONE_SURROGATE.search(body):
        return "has half of a character in it (a lone surrogate)"
    return str(error).partition(" - at ")[0]


def refusal(what: str, problems: Problems) -> Invalid:
    told = "; ".join(f"{field} {why}" if field else why for field, why in problems)
    return Invalid(f"{what} is not acceptable: {told}", fields=problems)


def of_document(document: Any, shape: type[msgspec.Struct], prefix: str = "") -> Problems:
    """Return the faults of a JSON object that should be this type; empty without any."""
    if not isinstance(document, dict):
        return [(prefix.rstrip("."), "must be a JSON object")]
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    problems = []
    if shape.__struct_config__.forbid_unknown_fields:
        known = ", ".join(fields)
        problems += [
            (f"{prefix}{name}", f"is not a field; there are: {known}") for name in document if name not in fields
        ]
    for name, field in fields.items():
        if name in document:
            problems += _of_value(document[name], field.type, f"{prefix}{name}")
        elif field.required:
            problems += [(f"{prefix}{name}", "is required"), *_of_missing(field.type, f"{prefix}{name}.")]
    return problems


def _of_missing(wanted: Any, prefix: str) -> Problems:
    """Return the faults of an object that is not there: the fields it should have."""
    inner = _struct_in(wanted)
    return [] if inner is None else of_document({}, inner, prefix)


def _of_value(value: Any, wanted: Any, name: str) -> Problems:
    inner = _struct_in(wanted)
    if inner is not None and isinstance(value, dict):
        return of_document(value, inner, f"{name}.")
    listed = _listed_in(wanted)
    if listed is not None and isinstance(value, list):
        inside = [one for place, item in enumerate(value) for one in _of_value(item, listed, f"{name}.{place}")]
        if inside:
            return inside
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at ")
        below = place.strip("`").removeprefix("$")
        return [(name + below, complaint.of_decoder(reason, wanted))]
    return []


def _parts(wanted: Any) -> tuple[Any, ...]:
    if get_origin(wanted) in (Union, UnionType):
        return get_args(wanted)
    return (wanted,)


def _struct_in(wanted: Any) -> type[msgspec.Struct] | None:
    return next((one for one in _parts(wanted) if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def _listed_in(wanted: Any) -> Any:
    """The type of a list's items, where they are objects of ours."""
    plain = get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted
    if get_origin(plain) in (list, tuple) and _struct_in(get_args(plain)[0]) is not None:
        return get_args(plain)[0]
    return None
