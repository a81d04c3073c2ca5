"""JSON in and out of the store and the wire, by msgspec. Nothing here knows what the values mean."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import msgspec

MAX_LEVELS = 100  # what shows and masks a payload later goes down level by level
SHORT = 2 * MAX_LEVELS  # a shorter document has not so many levels

# Of a pattern: its `$` alone also fits before a last line feed. Only Python's `re`, so msgspec, needs and knows this.
END = r"$(?!\n)"

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY_OR_TEXT = re.compile(rb"(%b)\s*+:|%b" % (_STRING, _STRING), re.DOTALL)
_GLANCED_BYTES = 1024  # of a longer document the strict reader finds its keys sooner

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

encode = _encoder.encode
decode = _decoder.decode


def check(value: object, encoded: bytes) -> None:
    """Raise ValueError for bottomless nesting, and for a NaN, which would silently become null."""
    check_depth(encoded)
    if b"null" in encoded:
        json.dumps(value, allow_nan=False, skipkeys=True, default=_plain)


def check_depth(encoded: bytes) -> None:
    brackets = encoded.count(b"[") + encoded.count(b"{")
    if brackets > MAX_LEVELS and _is_deeper(_decoder.decode(encoded), MAX_LEVELS):
        raise ValueError(f"it is nested more than {MAX_LEVELS} levels deep")


def _plain(value: object) -> Any:
    return None if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(one, levels - 1) for one in inner)


def encode_text(value: object) -> str:
    return _encoder.encode(value).decode()


def repeated_keys(document: bytes) -> list[str]:
    """Keys that stand twice in an object, at any level. A decoder takes the last one in silence.

    What is not JSON has none: its decoder says so.
    """
    return [] if len(document) <= _GLANCED_BYTES and _has_each_key_once(document) else _strictly_repeated(document)


def _has_each_key_once(document: bytes) -> bool:
    """At a glance: a key that two objects have, or that has escapes, needs a second look."""
    keys = [key for key in _KEY_OR_TEXT.findall(document) if key]
    return len(set(keys)) == len(keys) and (b"\\" not in document or not any(b"\\" in key for key in keys))


def _strictly_repeated(document: bytes) -> list[str]:
    repeated: dict[str, None] = {}

    def note(pairs: list[tuple[str, Any]]) -> None:
        counted = Counter(name for name, _ in pairs) if len(dict(pairs)) < len(pairs) else {}
        repeated.update((name, None) for name, number in counted.items() if number > 1)

    try:
        json.loads(document, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return []
    return list(repeated)
