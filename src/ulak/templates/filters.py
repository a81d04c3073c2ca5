"""The filters that templates may use: `{{ name|upper }}`. Capitals follow the template's language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from jinja2.filters import do_default, do_int
from markupsafe import escape


def filters_of(language: str) -> dict[str, Callable[..., Any]]:
    upper, lower = (_turkish_upper, _turkish_lower) if language == "tr" else (_upper, _lower)
    return {
        "abs": abs,
        "capitalize": lambda text: upper(text[:1]) + lower(text[1:]),
        "d": do_default,
        "default": do_default,
        "e": escape,
        "escape": escape,
        "int": do_int,
        "length": len,
        "lower": lower,
        "round": _round,
        "trim": lambda text: text.strip(),
        "truncate": _truncate,
        "upper": upper,
        "urlencode": lambda value: quote(str(value), safe=""),
    }


def _upper(text: str) -> str:
    return text.upper()


def _lower(text: str) -> str:
    return text.lower()


def _turkish_upper(text: str) -> str:
    return text.replace("i", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}").upper()


def _turkish_lower(text: str) -> str:
    dotted = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i")
    return dotted.replace("I", "\N{LATIN SMALL LETTER DOTLESS I}").lower()


def _round(number: float, digits: int = 0) -> float:
    return round(number, min(max(digits, -15), 15))


def _truncate(text: str, length: int = 255) -> str:
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"
