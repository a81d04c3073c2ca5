"""Keys that stand twice in an object: the quick look and the strict reader agree, whatever a document holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import codec

KEYS = st.sampled_from(["a", "b", 'a":', ":", "", "ı", '\\"', "\n"])
TEXTS = st.text(alphabet='ab":\\,{}[] \nı', max_size=8)
SPACES = st.sampled_from(["", "", "", " ", "\n", "\t"])


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> tuple[str, bool]:
    """JSON as somebody may write it, and whether one of its objects has a key twice."""
    shape = draw(st.sampled_from(["text", "object", "list"])) if depth else "text"
    if shape == "text":
        return json.dumps(draw(TEXTS), ensure_ascii=draw(st.booleans())), False
    inner = draw(st.lists(documents(depth=depth - 1), max_size=4))
    repeated = any(found for _, found in inner)
    if shape == "list":
        return "[" + ",".join(text for text, _ in inner) + "]", repeated
    keys = [draw(KEYS) for _ in inner]
    members = [
        f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(SPACES)}:{draw(SPACES)}{text}"
        for key, (text, _) in zip(keys, inner, strict=True)
    ]
    return "{" + ",".join(members) + "}", repeated or len(set(keys)) < len(keys)


@given(documents())
def test_a_key_that_stands_twice_is_found_and_no_other(document: tuple[str, bool]):
    text, repeated = document
    assert bool(codec.repeated_keys(text.encode())) == repeated


@pytest.mark.parametrize(
    "document",
    [
        b'{"a":1,"a":2}',
        b'{"a" :1,"a":2}',
        b'{"a":1,"a":2 ,"b" :1}',  # as many quotes with a colon as there are different keys
        b'{"a":1,"\\u0061":2}',
        b'[{"b":1},{"a":{"c":[{"a":1,"a":2}]}}]',
    ],
)
def test_a_repeated_key_is_named(document: bytes):
    assert codec.repeated_keys(document) == ["a"]


@pytest.mark.parametrize("document", [b"", b"{", b'{"a":1,}', b"\xff", b"[" * 5_000])
def test_what_is_not_json_has_none(document: bytes):
    assert codec.repeated_keys(document) == []
