"""JSON in and out of the store and the wire, by msgspec. Nothing here knows what the values mean."""

from __future__ import annotations

import json
from typing import Any

import msgspec

MAX_LEVELS = 100  # what shows and masks a payload later goes down level by level
SHORT = 2 * MAX_LEVELS  # a shorter document has not so many levels

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
