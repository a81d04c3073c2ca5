"""Words by language. English is written where it is used; Turkish stands in turkish.toml, by the English."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

LANGUAGES = ("en", "tr")


@cache
def turkish() -> dict[str, str]:
    return tomllib.loads((resources.files(__package__) / "turkish.toml").read_text("utf-8"))


def number(value: float, language: str) -> str:
    whole = isinstance(value, int) or float(value).is_integer()
    text = f"{value:,.0f}" if whole else f"{value:,.2f}".rstrip("0").rstrip(".")
    return text.translate(str.maketrans(",.", ".,")) if language == "tr" else text


@dataclass(frozen=True, slots=True)
class Say:
    """`say("{n} offers are open", n=1204)`: the text in a language, with numbers as people there write them."""

    language: str

    def __call__(self, text: str, **values: Any) -> str:
        found = turkish().get(text, text) if self.language == "tr" else text
        if not values:
            return found
        return found.format(**{
            name: number(value, self.language) if isinstance(value, int | float) else value
            for name, value in values.items()
        })  # fmt: skip

    def number(self, value: float) -> str:
        return number(value, self.language)

    def percent(self, share: float) -> str:
        text = number(round(share * 100, 1), self.language)
        return f"%{text}" if self.language == "tr" else f"{text} %"

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
