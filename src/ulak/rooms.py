"""Puts the rooms together: which handlers, channels and services an Ulak has. Wiring only; the rooms decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ulak.backoff import Backoff
from ulak.channels.channel import Channel, NotificationType
from ulak.channels.registry import Registry, discover
from ulak.channels.webhook import WebhookChannel, WebhookOptions
from ulak.compute.jobs import KIND, Runs
from ulak.compute.lane import ProcessLane
from ulak.compute.service import Compute
from ulak.notify.endpoint import Endpoints
from ulak.notify.jobs import Deliveries
from ulak.notify.model import POOL, kind_of
from ulak.notify.service import Notify
from ulak.notify.settings import NotifyOptions
from ulak.notify.template import Templates
from ulak.settings import Delivery, Settings
from ulak.spine.breaker import BreakerPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ulak.app import Ulak


# The engine has its own bounds per class; this many may be with it at once.
RUNS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class NotifyRoom:
    service: Notify
    deliveries: Deliveries
    registry: Registry


def notify_room(ulak: Ulak) -> NotifyRoom:
    """Register a handler for every type that some channel carries, and the service over them."""
    settings = ulak.settings
    endpoints = Endpoints(lambda: ulak.store)
    channels = [_webhook(ulak, endpoints), *discover(settings)]
    registry = Registry(channels)
    deliveries = Deliveries(registry, ulak.telemetry, endpoints)
    types = _types(channels)
    for name in types:
        _register(ulak, name, deliveries)
    templates = Templates()
    templates.load()
    service = Notify(
        NotifyOptions.of(settings), templates, frozenset(types), lambda: (ulak.store, ulak.loops.gate), endpoints
    )
    return NotifyRoom(service, deliveries, registry)


@dataclass(frozen=True, slots=True)
class ComputeRoom:
    service: Compute
    lane: ProcessLane


def compute_room(ulak: Ulak) -> ComputeRoom:
    """The handler of durable tasks, and the process lane for any other kind."""
    section = ulak.settings.compute
    service = Compute(section, lambda: (ulak.store, ulak.loops))
    runs = Runs(service.engine, section.timeout_seconds)
    ulak.handles(
        KIND, concurrency=RUNS_AT_ONCE, timeout_seconds=section.timeout_seconds + 15, capacity=section.capacity
    )(runs.run)
    return ComputeRoom(service, ProcessLane(service.engine, service.close))


def _types(channels: Sequence[Channel]) -> list[str]:
    """The types that Ulak knows, and those of plug-ins, which answer to their own name."""
    extra = {channel.name.upper() for channel in channels if channel.can_handle(channel.name.upper())}
    return sorted({name.value for name in NotificationType} | extra)


def _webhook(ulak: Ulak, endpoints: Endpoints) -> WebhookChannel:
    section = ulak.settings.channels.webhook
    options = WebhookOptions(
        allow=tuple(section.allow),
        timeout_seconds=section.timeout_seconds,
        retry_after_cap_seconds=section.retry_after_cap_seconds,
        connections=section.consumers,
    )
    return WebhookChannel(options, secrets=endpoints.secrets, clock=ulak.clock)


def _register(ulak: Ulak, name: str, deliveries: Deliveries) -> None:
    settings = ulak.settings
    policy = _policy(settings, name)
    deliver = {"IN_APP": deliveries.deliver_in_app, "WEBHOOK": deliveries.deliver_webhook}.get(name, deliveries.deliver)
    ulak.handles(
        kind_of(name),
        concurrency=policy.consumers,
        max_attempts=policy.max_attempts,
        # Longer than the channel's own limit, so that the channel can still say what it knows of a late attempt.
        timeout_seconds=getattr(policy, "timeout_seconds", 60.0) + 15,
        backoff=Backoff(policy.retry_first_seconds, policy.retry_factor, policy.retry_cap_seconds),
        capacity=settings.notify.capacity,
        admission=settings.notify.admission,
        wait_seconds=settings.notify.wait_seconds,
        breaker=BreakerPolicy() if name == "WEBHOOK" else None,
        pool=POOL,
    )(deliver)


def _policy(settings: Settings, name: str) -> Delivery:
    section = getattr(settings.channels, name.lower(), settings.channels.plugin)
    return section if isinstance(section, Delivery) else settings.channels.plugin
