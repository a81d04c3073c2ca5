"""JSON in and out of the store and the wire, by msgspec. Nothing here knows what the values mean."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec

MAX_LEVELS = 100  # what shows and masks a payload later goes down level by level
SHORT = 2 * MAX_LEVELS  # a shorter document has not so many levels

# Of a pattern: its `$` alone also fits before a last line feed. Only Python's `re`, so msgspec, needs and knows this.
END = r"$(?!\n)"

_CONTAINERS = (dict, list)
_SPACES = b" \t\n\r"

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
    try:
        if has_no_more_keys(document, number_of_keys(_decoder.decode(document))):
            return []
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    return _strictly_repeated(document)


def has_no_more_keys(document: bytes, number: int) -> bool:
    """Return True if a document has as many keys as were decoded from it, so that none was lost.

    Every key ends in a quote and a colon, and at most spaces between. Texts may have both too, so there seem to be more
    keys, never fewer.
    """
    return document.translate(None, _SPACES).count(b'":') == number


def number_of_keys(value: Any) -> int:
    if isinstance(value, dict):
        number, value = len(value), value.values()
    elif isinstance(value, list):
        number = 0
    else:
        return 0
    for inner in value:
        if isinstance(inner, _CONTAINERS):
            number += number_of_keys(inner)
    return number


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
