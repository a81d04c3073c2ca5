"""A pattern of ours takes no line feed after a text that fits: Python's `$` would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from msgspec import inspect

from tests.api.test_openapi import DOCUMENT
from ulak.http.problems import PATTERNS

# The first that fits is the pattern's own example.
EXAMPLES = (
    "12", "0a1b2c3d4e", "0123456789abcdef0123456789abcdef", "0ca0d6db-9140-8000-8000-0000756c616b",
    "2027-01-01T09:00:00Z", "1795000000000-869712345678901248", "1042-7", "monday.db",
)  # fmt: skip


def structs(parent: type[msgspec.Struct] = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    for one in parent.__subclasses__():
        yield one
        yield from structs(one)


def patterns_in(value: Any, seen: set[int]) -> Iterator[str]:
    """Every pattern in a type as msgspec sees it."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, inspect.StrType) and value.pattern is not None:
        yield value.pattern
    if isinstance(value, inspect.Type | inspect.Field):
        for name in value.__struct_fields__:
            yield from patterns_in(getattr(value, name), seen)
    elif isinstance(value, tuple):
        for one in value:
            yield from patterns_in(one, seen)


def shape_of(struct: type[msgspec.Struct]) -> inspect.Type | None:
    """None for a type of the inside, which nothing is decoded to."""
    try:
        return inspect.type_info(struct)
    except (TypeError, NameError):
        return None


def decoded_patterns() -> set[str]:
    assert DOCUMENT  # the door is there, and with it every room's forms
    ours = [one for one in structs() if one.__module__.startswith("ulak.")]
    return {pattern for one in ours for pattern in patterns_in(shape_of(one), set())}


DECODED = decoded_patterns()
assert len(DECODED) >= 5


def fits(pattern: str, text: str) -> bool:
    try:
        if pattern in DECODED:
            msgspec.convert(text, Annotated[str, msgspec.Meta(pattern=pattern)])
        else:
            pydantic.TypeAdapter(Annotated[str, pydantic.Field(pattern=pattern)]).validate_python(text)
    except (msgspec.ValidationError, pydantic.ValidationError):
        return False
    return True


@pytest.mark.parametrize("pattern", sorted({*DECODED, *PATTERNS}))
def test_a_pattern_takes_its_example_and_not_with_a_line_feed(pattern):
    example = next(one for one in EXAMPLES if fits(pattern, one))
    assert not fits(pattern, f"{example}\n")
