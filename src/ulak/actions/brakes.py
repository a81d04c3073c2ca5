"""Brakes: how much a channel of a recipient may get in an hour, in messages and in SMS segments.

A message is counted in a commit before it is sent: of a hundred that go at once no more pass than the brake allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ulak.actions.model import ADDRESSED, StepTarget
from ulak.settings.actions import Actions as ActionsSection
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries("ulak.actions")

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


NO_BRAKE = Brake()


def brakes_of(section: ActionsSection) -> dict[str, Brake]:
    """The brake of each channel type that needs a recipient."""
    messages = {name: Brake(getattr(section, name).messages_per_hour) for name in ADDRESSED}
    return messages | {"sms": Brake(section.sms.messages_per_hour, section.sms.segments_per_hour)}


@dataclass(frozen=True, slots=True)
class Spent:
    """Messages and segments that an hour has had already."""

    messages: int = 0
    segments: int = 0


class Brakes:
    """Where a channel type has no brake, nothing is counted."""

    def __init__(self, open_store: Callable[[], Store], of_type: Mapping[str, Brake]) -> None:
        self._store = open_store
        self._of_type = of_type

    async def count(self, target: StepTarget, text: str, *, passes: bool) -> str | None:
        """Count a message that is about to go; what passes is counted too, and never held. Why not, if it may not."""
        brake = self._of_type.get(target.channel_type, NO_BRAKE)
        if brake == NO_BRAKE:
            return None
        return await self._store().write(
            count_message, target.channel_id, segments_to(target, text), NO_BRAKE if passes else brake
        )


def count_message(tx: Tx, channel: int, segments: int, brake: Brake) -> str | None:
    tx.lock_keys([f"actions:brake:{channel}"])
    why = over(brake, read_spent(tx, [channel], tx.now).get(channel, Spent()), segments)
    if why is None:
        tx.insert_rows(sql.add_spent, [(channel, hour_of(tx.now), 1, segments)])
        return None
    return f"channel {channel} had {why}"


def read_spent(tx: Tx, channels: list[int], at: int) -> dict[int, Spent]:
    """Return how much channels had in the hour of an instant."""
    rows = tx.rows(sql.read_spent, channels=channels, hour=hour_of(at)) if channels else []
    return {channel: Spent(messages, segments) for channel, messages, segments in rows}


def segments_to(target: StepTarget, text: str) -> int:
    return segments_of(text) if target.channel_type == "sms" else 0


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
