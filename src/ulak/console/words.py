"""Words by language. English is written where it is used; Turkish stands in turkish.toml, by the English.

A number changes nothing in a Turkish sentence. Where English needs another for a single thing, singular.toml has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

LANGUAGES = ("en", "tr")
SWAPPED = str.maketrans(",.", ".,")
NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
PLACES = re.compile(r"\{(\w+)\}")


MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "tr": ["Oca", "Şub", "Mar", "Nis", "May", "Haz", "Tem", "Ağu", "Eyl", "Eki", "Kas", "Ara"],
}


@cache
def turkish() -> dict[str, str]:
    return tomllib.loads((resources.files(__package__) / "turkish.toml").read_text("utf-8"))


@cache
def singular() -> dict[str, str]:
    return tomllib.loads((resources.files(__package__) / "singular.toml").read_text("utf-8"))


def number(value: float, language: str) -> str:
    whole = isinstance(value, int) or float(value).is_integer()
    text = f"{value:,.0f}" if whole else f"{value:,.2f}".rstrip("0").rstrip(".")
    return text.translate(SWAPPED) if language == "tr" else text


def _turkish_reason(text: str) -> str:
    name, between, rest = text.rpartition(": ")
    found = turkish().get(NUMBERS.sub("#", rest))
    if found is None:
        return text
    numbers = iter(NUMBERS.findall(rest))
    return name + between + re.sub("#", lambda _: next(numbers).translate(SWAPPED), found)


@dataclass(frozen=True, slots=True)
class Say:
    """`say("{n} offers are open", n=1204)`: the text in a language, with numbers as people there write them."""

    language: str

    def __call__(self, text: str, **values: Any) -> str:
        found = self.text(text, values)
        if not values:
            return found
        return found.format(**{
            name: number(value, self.language) if isinstance(value, int | float) else value
            for name, value in values.items()
        })  # fmt: skip

    def text(self, text: str, values: Mapping[str, Any]) -> str:
        """The sentence for these values, its places still empty. Its first number says whether one thing is meant."""
        if self.language == "tr":
            return turkish().get(text, text)
        numbers = [values[name] for name in PLACES.findall(text) if isinstance(values.get(name), int | float)]
        return singular().get(text, text) if numbers[:1] == [1] else text

    def told(self, text: str) -> str:
        """A reason of the API, which speaks English. Its numbers stand as # in turkish.toml, names as they are."""
        if self.language != "tr":
            return text
        return "; ".join(map(_turkish_reason, text.split("; ")))

    def sentence(self, text: str) -> str:
        """With a capital letter; in Turkish that of i is İ."""
        found = self(text)
        first = "İ" if self.language == "tr" and found[0] == "i" else found[0].upper()
        return first + found[1:]

    def number(self, value: float) -> str:
        return number(value, self.language)

    def date(self, at: datetime) -> str:
        return f"{at.day} {MONTHS[self.language][at.month - 1]} {at.year}"

    def percent(self, share: float) -> str:
        share *= 100
        text = number(round(share, 1 if 1 <= share <= 99 else 2), self.language)
        return f"%{text}" if self.language == "tr" else f"{text} %"

    def offset(self, seconds: float) -> str:
        """How long after the first moment of a timeline, to the millisecond."""
        text, unit = f"+{seconds:,.3f}", "s"
        if self.language == "tr":
            text, unit = text.translate(SWAPPED), "sn"
        return f"{text}\N{NO-BREAK SPACE}{unit}"

    def seconds(self, value: float) -> str:
        """A duration, with as many digits as it deserves."""
        ms, s, minutes, hours = ("ms", "sn", "dk", "sa") if self.language == "tr" else ("ms", "s", "min", "h")
        if value < 1:
            return f"{self.number(round(value * 1000))} {ms}"
        if value < 60:
            return f"{self.number(round(value, 1))} {s}"
        return (
            f"{self.number(round(value / 60))} {minutes}"
            if value < 7200
            else f"{self.number(round(value / 3600, 1))} {hours}"
        )
