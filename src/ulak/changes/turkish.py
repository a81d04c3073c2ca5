"""Lower case by Turkish rules: I has a dotless small letter, and the dotted capital an ordinary i."""

from __future__ import annotations

_CAPITALS = str.maketrans({"I": "ı", "İ": "i"})


def lower(text: str) -> str:
    return text.translate(_CAPITALS).lower()
