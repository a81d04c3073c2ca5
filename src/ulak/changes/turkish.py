"""Lower case by Turkish rules: I has a dotless small letter, and the dotted capital an ordinary i."""

from __future__ import annotations


def lower(text: str) -> str:
    return text.replace("I", "ı").replace("İ", "i").lower()
