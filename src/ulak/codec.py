"""JSON in and out of the store and the wire, by msgspec. Nothing here knows what the values mean."""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

encode = _encoder.encode
decode = _decoder.decode


def encode_text(value: object) -> str:
    return _encoder.encode(value).decode()
