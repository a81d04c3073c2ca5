"""Brakes: how much a channel of a recipient may get in an hour, in messages and in SMS segments."""

from __future__ import annotations

from dataclasses import dataclass

HOUR_MILLIS = 3_600_000
# The characters of GSM 03.38; those of its second table take two places.
_GSM = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà"
)
_GSM_TWICE = frozenset("^{}\\[~]|€\f")


@dataclass(frozen=True, slots=True)
class Brake:
    """The most of an hour; 0 sets no limit."""

    messages: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What an hour has had already."""

    messages: int = 0
    segments: int = 0


def hour_of(now: int) -> int:
    return now // HOUR_MILLIS


def segments_of(text: str) -> int:
    """Into how many SMS a text is cut: 160 or 153 characters of the GSM alphabet each, else 70 or 67 UTF-16 units."""
    if all(letter in _GSM or letter in _GSM_TWICE for letter in text):
        length = sum(2 if letter in _GSM_TWICE else 1 for letter in text)
        return 1 if length <= 160 else -(-length // 153)
    length = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return 1 if length <= 70 else -(-length // 67)


def over(brake: Brake, spent: Spent, segments: int) -> str | None:
    """Why one more message would be too much; None when it is not."""
    if brake.messages and spent.messages >= brake.messages:
        return f"{spent.messages} messages in this hour; the brake is at {brake.messages}"
    if brake.segments and spent.segments + segments > brake.segments:
        return f"{spent.segments} SMS segments in this hour; the brake is at {brake.segments}"
    return None
