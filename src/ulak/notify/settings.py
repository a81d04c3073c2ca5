"""What the room needs of the settings, in one small value."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.settings import Settings

_HOUR_MILLIS = 3_600_000


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    idempotency_millis: int
    inbox_millis: int
    slots_per_destination: int

    @classmethod
    def of(cls, settings: Settings) -> NotifyOptions:
        return cls(
            round(settings.notify.idempotency_hours * _HOUR_MILLIS),
            round(settings.notify.inbox_days * 24 * _HOUR_MILLIS),
            settings.channels.webhook.slots_per_destination,
        )
