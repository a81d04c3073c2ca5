"""The room's handlers: one job kind per notification type, each delivered by the channel that says it can."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from ulak import ids
from ulak.channels.channel import Channel, EndpointGone, Message, Receipt, Uncertain
from ulak.channels.registry import Registry
from ulak.clock import Clock
from ulak.errors import Held, Permanent
from ulak.notify import inbox
from ulak.notify.endpoint import Endpoints
from ulak.notify.model import Notification
from ulak.spine.executor import error_class
from ulak.spine.job import Job
from ulak.spine.outcome import Done
from ulak.spine.telemetry import Telemetry


def to_notification(job: Job) -> Notification:
    try:
        return msgspec.convert(job.payload, Notification)
    except msgspec.ValidationError as error:
        raise Permanent(f"the payload is no notification ({error}); edit the dead letter and send it again") from None


def to_message(job: Job, notification: Notification) -> Message:
    identifier = ids.to_text(job.id)
    return Message(
        id=identifier,
        notification_type=notification.notification_type,
        recipient=notification.recipient,
        subject=notification.subject,
        body=notification.body,
        html=notification.html,
        priority=job.priority.name,
        metadata=notification.metadata,
        created_millis=job.accepted_millis,
        attempt=job.attempt,
        idempotency_key=identifier,
    )


class Deliveries:
    """Delivers through channels."""

    def __init__(self, registry: Registry, telemetry: Telemetry, endpoints: Endpoints, clock: Clock) -> None:
        self._registry = registry
        self._telemetry = telemetry
        self.endpoints = endpoints
        self._clock = clock

    async def deliver(self, job: Job) -> Done:
        return await self._deliver(job, to_notification(job))

    async def deliver_in_app(self, job: Job) -> Done:
        """The inbox is in our own database: the item and the end of its job are one transaction."""
        notification = to_notification(job)
        return Done(
            {"channel": "in_app"},
            unit=partial(inbox.add, identifier=job.id, created_at=job.accepted_millis, notification=notification),
        )

    async def deliver_webhook(self, job: Job) -> Done:
        notification = to_notification(job)
        url = notification.recipient
        known = await self.endpoints.find(url)
        if known is not None and known.disabled_at is not None:
            raise Permanent(f"the endpoint is switched off: {known.reason}; enable it to send again")
        try:
            return await self._deliver(job, notification)
        except EndpointGone as gone:
            await self.endpoints.disable(url, "it answered 410 Gone")
            raise gone from None

    async def _deliver(self, job: Job, notification: Notification) -> Done:
        channel = self._registry.find(notification.notification_type)
        began = self._clock.monotonic()
        try:
            receipt = await _handed(channel, to_message(job, notification))
        except Exception as error:  # noqa: BLE001 - counted whatever it is, and raised again
            failure = _held(error) if notification.hold and isinstance(error, Uncertain) else error
            self._telemetry.count("notify_failures", job.kind, (channel.name, _class(error)))
            raise failure from None
        finally:
            seconds = self._clock.monotonic() - began
            self._telemetry.observe("notify_handle_seconds", job.kind, channel.name, seconds)
        return Done(_result(channel, receipt))


async def _handed(channel: Channel, message: Message) -> Receipt:
    try:
        return await channel.handle(message)
    except asyncio.CancelledError:
        # Too late, cancelled or stopping: what the channel had sent by then, nobody knows.
        raise Uncertain("the attempt was broken off while the message was being handed over") from None


def _held(error: Uncertain) -> Held:
    return Held(f"{error} It must not be sent twice, so it waits for a person: resend or drop it.")


def _class(error: Exception) -> str:
    return "uncertain" if isinstance(error, Uncertain) else error_class(error)


def _result(channel: Channel, receipt: Receipt) -> dict[str, object]:
    result: dict[str, object] = {"channel": channel.name, "providerId": receipt.provider_id}
    return {**result, "detail": receipt.detail} if receipt.detail else result
