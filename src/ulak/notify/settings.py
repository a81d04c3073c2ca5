"""The room's part of the settings, in one small value."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.channels.destination import Destinations
from ulak.settings import Settings

_HOUR_MILLIS = 3_600_000


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    idempotency_millis: int
    inbox_millis: int
    history_millis: int
    destinations: Destinations

    @classmethod
    def of(cls, settings: Settings) -> NotifyOptions:
        return cls(
            round(settings.notify.idempotency_hours * _HOUR_MILLIS),
            round(settings.notify.inbox_days * 24 * _HOUR_MILLIS),
            round(settings.spine.history_days * 24 * _HOUR_MILLIS),
            Destinations(settings),
        )
