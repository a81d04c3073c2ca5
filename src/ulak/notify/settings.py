"""What the room needs of the settings, in one small value."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.settings import Settings


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    idempotency_hours: float
    slots_per_destination: int

    @classmethod
    def of(cls, settings: Settings) -> NotifyOptions:
        return cls(settings.notify.idempotency_hours, settings.channels.webhook.slots_per_destination)
