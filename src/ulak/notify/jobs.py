"""The room's handlers: one job kind per notification type, each delivered by the channel that says it can."""

from __future__ import annotations

import asyncio
import re
from functools import partial

import msgspec

from ulak.channels.channel import Channel, EndpointGone, Message, Receipt, Uncertain
from ulak.channels.endpoint import Endpoints
from ulak.channels.registry import Registry
from ulak.errors import Failure, Held, Permanent
from ulak.notify import inbox
from ulak.notify.attempts import RECORD_ATTEMPT, NewAttempt
from ulak.notify.model import Notification
from ulak.notify.privacy import without_private
from ulak.spine.job import Job
from ulak.spine.loops.classify import error_class
from ulak.spine.outcome import Done
from ulak.spine.room import Host


def to_notification(job: Job) -> Notification:
    try:
        return msgspec.convert(job.payload, Notification)
    except msgspec.ValidationError as error:
        why = f"the payload is not a notification ({error}); edit the dead letter and send it again"
        raise Permanent(why, unsent=True) from None


def to_message(job: Job, notification: Notification) -> Message:
    return Message(
        id=job.uuid,
        notification_type=notification.notification_type,
        recipient=notification.recipient,
        subject=notification.subject,
        body=notification.body,
        html=notification.html,
        priority=job.priority.name,
        metadata=notification.metadata,
        created_millis=job.accepted_millis,
        attempt=job.attempt,
        idempotency_key=job.uuid,
        expires_millis=notification.expires_millis,
        began_millis=job.started_millis,
        timeout_seconds=notification.timeout_seconds,
        target_meta=notification.target_meta,
        event_type=notification.event_type,
        data=notification.data,
        trace=job.trace,
    )


class Deliveries:
    """Delivers through channels."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._registry: Registry = host.channels
        self._telemetry = host.telemetry
        self.endpoints: Endpoints = host.channels.endpoints
        self._clock = host.clock

    async def deliver(self, job: Job) -> Done:
        return await self._deliver(job, to_notification(job))

    async def deliver_in_app(self, job: Job) -> Done:
        """The inbox is in our own database: the item and the end of its job are one transaction."""
        began, notification = self._clock.monotonic(), to_notification(job)
        self._telemetry.observe("notify_handle_seconds", job.kind, "in_app", self._clock.monotonic() - began)
        self._note_delivered(job, "in_app")
        return Done(
            {"channel": "in_app"},
            unit=partial(inbox.add, identifier=job.id, created_at=job.accepted_millis, notification=notification),
        )

    async def deliver_webhook(self, job: Job) -> Done:
        notification = to_notification(job)
        url = notification.recipient
        known = await self.endpoints.find(url)
        if known is not None and known.disabled_at is not None:
            raise Permanent(f"the endpoint is switched off: {known.reason}; enable it to send again", unsent=True)
        began = self._clock.monotonic()
        try:
            done = await self._deliver(job, notification)
        except EndpointGone as gone:
            self._record(job, url, began, gone.code)
            await self.endpoints.disable(url, "it answered 410 Gone")
            raise gone from None
        except Failure as failure:
            self._record(job, url, began, failure.code)
            raise
        self._record(job, url, began, None, done.result["detail"]["status"])
        return done

    def _record(self, job: Job, url: str, began: float, code: str | None, status: int | None = None) -> None:
        """Beside the delivery, which does not wait for it: what a crash loses here is also in the job's timeline."""
        millis = round((self._clock.monotonic() - began) * 1000)
        answered = re.fullmatch(r"WEBHOOK_HTTP_(\d{3})", code or "")
        told = int(answered[1]) if answered else status
        kept = asyncio.ensure_future(
            self._host.store.submit(RECORD_ATTEMPT, NewAttempt(url, job.id, job.attempt, millis, told, code))
        )
        kept.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _deliver(self, job: Job, notification: Notification) -> Done:
        channel = self._registry.find(notification.notification_type)
        began, loop = self._clock.monotonic(), asyncio.get_running_loop()
        handed_at = loop.time()  # by the clock of the channels' own timeouts
        try:
            receipt = await _handed(channel, to_message(job, notification))
        except Exception as error:  # noqa: BLE001 - counted whatever it is, and raised again
            told = without_private(error, notification)
            failure = _held(told) if notification.hold and isinstance(told, Uncertain) else told
            self._telemetry.count("notify_failures", job.kind, (channel.name, _class(error)))
            self._telemetry.count("notify_errors", job.kind, (channel.name, getattr(error, "code", None) or "OTHER"))
            if isinstance(failure, Failure) and self._was_hurried(notification, failure, loop.time() - handed_at):
                failure.tells_of_destination = False
            raise failure from None
        finally:
            seconds = self._clock.monotonic() - began
            self._telemetry.observe("notify_handle_seconds", job.kind, channel.name, seconds)
        self._note_delivered(job, channel.name)
        return Done(_result(channel, receipt))

    def _was_hurried(self, notification: Notification, failure: Failure, seconds: float) -> bool:
        """A time limit of the message's own was over: that says nothing of a destination which others use, too.

        One that the channel's own limits were shorter than was not: a server that hangs opens its breaker.
        """
        late = (failure.code or "").endswith(("_TIMEOUT", "_CUT_OFF"))
        limit, ends_at = notification.timeout_seconds, notification.expires_millis
        has_ended = ends_at is not None and ends_at <= self._host.store.clock.now()
        return late and (has_ended or (limit is not None and seconds >= limit))

    def _note_delivered(self, job: Job, handler: str) -> None:
        seconds = (self._host.store.clock.now() - job.accepted_millis) / 1000
        self._telemetry.observe("notify_delivery_seconds", job.kind, handler, seconds)


async def _handed(channel: Channel, message: Message) -> Receipt:
    try:
        return await channel.handle(message)
    except asyncio.CancelledError:
        # Too late, cancelled or stopping: what the channel had sent by then, nobody knows.
        raise Uncertain(
            "the attempt was broken off while the message was being handed over",
            code=f"{channel.name.upper().replace('-', '_')}_CUT_OFF",
        ) from None


def _held(error: Uncertain) -> Held:
    return Held(f"{error} It must not be sent twice, so it waits for a person: resend or drop it.", code=error.code)


def _class(error: Exception) -> str:
    return "uncertain" if isinstance(error, Uncertain) else error_class(error)


def _result(channel: Channel, receipt: Receipt) -> dict[str, object]:
    result: dict[str, object] = {"channel": channel.name, "providerId": receipt.provider_id}
    return {**result, "detail": receipt.detail} if receipt.detail else result
