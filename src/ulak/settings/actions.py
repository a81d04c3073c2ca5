"""Settings of the actions room: its bounds, its topics, and the limits of each channel's steps."""

from __future__ import annotations

from pydantic import Field

from ulak.settings.bus import TOPIC
from ulak.settings.section import Section, TimeZone

_HOURS = r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$"


class ActionLimits(Section):
    """Limits of a channel's steps: how long an attempt may take, how many follow it, how many run at once."""

    timeout_seconds: float = Field(5, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(3, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")
    consumers: int = Field(100, ge=1, le=1000, description="Steps of this channel at once in one process.")


class BrakedLimits(ActionLimits):
    """Limits of a channel that needs a recipient: brakes besides."""

    messages_per_hour: int = Field(
        0, ge=0, le=1_000_000, description="Most messages to one recipient's channel in an hour; 0 sets no limit."
    )


class PushSteps(BrakedLimits):
    """Steps with channel_type push."""

    timeout_seconds: float = Field(3, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(2, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")


class WhatsappSteps(BrakedLimits):
    """Steps with channel_type whatsapp."""

    timeout_seconds: float = Field(8, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(1, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")


class EmailSteps(BrakedLimits):
    """Steps with channel_type email."""

    timeout_seconds: float = Field(10, gt=0, le=120, description="Longest time for one attempt.")


class WebhookSteps(BrakedLimits):
    """Steps with channel_type webhook."""


class SmsSteps(BrakedLimits):
    """Steps with channel_type sms."""

    timeout_seconds: float = Field(8, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(1, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")
    segments_per_hour: int = Field(
        0, ge=0, le=1_000_000, description="Most SMS segments to one recipient's channel in an hour; 0 sets no limit."
    )


class SlackSteps(BrakedLimits):
    """Steps with channel_type slack."""


class AuditSteps(ActionLimits):
    """Steps with channel_type audit."""

    timeout_seconds: float = Field(2, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(0, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")


class DownlinkSteps(ActionLimits):
    """Steps with channel_type downlink."""

    timeout_seconds: float = Field(2, gt=0, le=120, description="Longest time for one attempt.")
    retries: int = Field(0, ge=0, le=20, description="Attempts after the first one: after 1, 5, 15 and again 15 s.")


class Actions(Section):
    """Running action plans."""

    capacity: int = Field(100_000, ge=1, le=1_000_000_000, description="Most unfinished runs; beyond them 429.")
    idempotency_days: float = Field(
        30, gt=0, le=3650, description="How long a repeated evaluation_key is the first run; runs are kept as long."
    )
    downlink_topic: str = Field(
        "cinga.downlink.requested", pattern=TOPIC, description="Where downlink steps are handed over."
    )
    receipt_events: bool = Field(
        False, description="Write action.delivery.updated.v1 on cinga.action.receipts when a receipt comes."
    )
    quiet_hours: str = Field(
        "", pattern=_HOURS, description='When nobody is disturbed who has no hours of their own: "22:00-07:00".'
    )
    time_zone: TimeZone = Field("UTC", description="Of the quiet hours, for a profile that has none of its own.")
    slo_hours: float = Field(24, gt=0, le=720, description="How far back the service levels look.")
    push: PushSteps = PushSteps()
    whatsapp: WhatsappSteps = WhatsappSteps()
    email: EmailSteps = EmailSteps()
    webhook: WebhookSteps = WebhookSteps()
    sms: SmsSteps = SmsSteps()
    slack: SlackSteps = SlackSteps()
    audit: AuditSteps = AuditSteps()
    downlink: DownlinkSteps = DownlinkSteps()

    @property
    def idempotency_millis(self) -> int:
        return round(self.idempotency_days * 86_400_000)
