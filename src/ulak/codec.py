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

_SPACED_COLON = re.compile(rb'"\s+:')

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
    return [] if _has_each_key_once(document) else _strictly_repeated(document)


def _has_each_key_once(document: bytes) -> bool:
    """Return whether as many keys came out of the decoder as can have gone in; False needs a second look.

    Every key ends in a quote and a colon. Texts may have both too, so that there seem to be more keys, never fewer.
    """
    if _SPACED_COLON.search(document):
        return False
    try:
        return document.count(b'":') == _number_of_keys(_decoder.decode(document))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _number_of_keys(value: Any) -> int:
    number = 0
    containers = (dict, list)
    unseen = [value]
    while unseen:
        value = unseen.pop()
        if isinstance(value, dict):
            number += len(value)
            value = value.values()
        elif not isinstance(value, list):
            continue
        unseen += [inner for inner in value if isinstance(inner, containers)]
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
