"""The room's handlers: one job kind per notification type, each delivered by the channel that says it can."""

from __future__ import annotations

from functools import partial

import msgspec

from ulak import ids
from ulak.channels.channel import EndpointGone, Message
from ulak.channels.registry import Registry
from ulak.errors import Failure, Permanent
from ulak.notify import inbox
from ulak.notify.endpoint import Endpoints
from ulak.notify.model import Notification
from ulak.spine.executor import error_class
from ulak.spine.job import Job
from ulak.spine.outcome import Done
from ulak.spine.telemetry import Telemetry


def to_notification(job: Job) -> Notification:
    return msgspec.convert(job.payload, Notification)


def to_message(job: Job, notification: Notification) -> Message:
    identifier = str(ids.to_uuid(job.id))
    return Message(
        id=identifier,
        notification_type=notification.notification_type,
        recipient=notification.recipient,
        subject=notification.subject,
        body=notification.body,
        html=notification.html,
        priority=job.priority.name,
        metadata=notification.metadata,
        created_at=job.accepted_at,
        attempt=job.attempt,
        idempotency_key=identifier,
    )


class Deliveries:
    """Delivers through channels."""

    def __init__(self, registry: Registry, telemetry: Telemetry, endpoints: Endpoints) -> None:
        self._registry = registry
        self._telemetry = telemetry
        self.endpoints = endpoints

    async def deliver(self, job: Job) -> Done:
        notification = to_notification(job)
        channel = self._registry.find(notification.notification_type)
        try:
            receipt = await channel.handle(to_message(job, notification))
        except Failure as error:
            self._telemetry.count("notify_failures", job.kind, f"{channel.name}:{error_class(error)}")
            raise
        return Done(
            {
                "channel": channel.name,
                "providerId": receipt.provider_id,
                **({"detail": receipt.detail} if receipt.detail else {}),
            }
        )

    async def deliver_in_app(self, job: Job) -> Done:
        """The inbox is in our own database: the item and the end of its job are one transaction."""
        notification = to_notification(job)
        return Done(
            {"channel": "in_app"},
            unit=partial(inbox.add, identifier=job.id, created_at=job.accepted_at, notification=notification),
        )

    async def deliver_webhook(self, job: Job) -> Done:
        url = to_notification(job).recipient
        known = await self.endpoints.find(url)
        if known is not None and known.disabled_at is not None:
            raise Permanent(f"the endpoint is switched off: {known.reason}; enable it to send again")
        try:
            return await self.deliver(job)
        except EndpointGone as gone:
            await self.endpoints.disable(url, "it answered 410 Gone")
            raise gone from None
