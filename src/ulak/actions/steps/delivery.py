"""Handing one message to the channel of its type, within its time: out comes a receipt, or a failure as a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ulak import codec
from ulak.actions.decide import Limits, StepFailure
from ulak.actions.model import StepTarget
from ulak.actions.plans.render import Words
from ulak.actions.steps.failures import failure_of, provider_of, timed_out
from ulak.channels.channel import Message
from ulak.channels.registry import Registry
from ulak.spine.job import Job
from ulak.spine.store import Store


class Delivery:
    """Uses the one registry of channels: connections, secrets and breakers are everybody's."""

    def __init__(self, channels: Callable[[], Registry], open_store: Callable[[], Store]) -> None:
        self._channels = channels
        self._store = open_store

    @property
    def shared(self) -> bool:
        """Whether other processes may change what this one has just read."""
        return self._store().multi_process

    def name_of(self, identifier: int) -> str:
        """A job or a run as the outside knows it."""
        return self._store().ids.to_text(identifier)

    async def hand_over(
        self, job: Job, target: StepTarget, words: Words, metadata: dict[str, Any], limits: Limits
    ) -> str | StepFailure:
        """`<provider>:<id>` of the message, or why it did not go."""
        message = _message(self.name_of(job.id), job, target, words, metadata, limits)
        try:
            channel = self._channels().find(message.notification_type)
            async with asyncio.timeout(limits.timeout_seconds):
                receipt = await channel.handle(message)
        except TimeoutError:
            return timed_out(target.channel_type, limits.timeout_seconds)
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a failed attempt
            return failure_of(error, target.channel_type)
        return _named(receipt.provider_id, target.channel_type, message.id)


def _message(
    identifier: str, job: Job, target: StepTarget, words: Words, metadata: dict[str, Any], limits: Limits
) -> Message:
    """The id is the job's, so it stays the same over retries and redrives."""
    return Message(
        id=identifier,
        notification_type=target.channel_type.upper(),
        recipient=target.target,
        subject=words.subject,
        body=words.body,
        html=words.html,
        priority=job.priority.name,
        metadata=metadata,
        created_millis=job.accepted_millis,
        attempt=job.attempt,
        idempotency_key=identifier,
        timeout_seconds=limits.timeout_seconds,
        target_meta=codec.decode(target.target_meta),
        trace=job.trace,
    )


def _named(given: str | None, channel_type: str, message_id: str) -> str:
    if given is None or channel_type == "webhook":
        return f"{channel_type}:{message_id}"
    return given if ":" in given else f"{provider_of(channel_type).lower()}:{given}"
