"""Puts the rooms together: which handlers, channels and services an Ulak has. Wiring only; the rooms decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ulak.backoff import Backoff
from ulak.channels.channel import Channel, NotificationType
from ulak.channels.registry import BUILT_IN, Registry, discover
from ulak.channels.webhook import WebhookChannel, WebhookOptions
from ulak.compute.jobs import KINDS, MOST_RETRIES, Runs
from ulak.compute.jobs import POOL as COMPUTE_POOL
from ulak.compute.lane import ProcessLane
from ulak.compute.service import Compute
from ulak.notify import idempotency, inbox
from ulak.notify.endpoint import Endpoints
from ulak.notify.jobs import Deliveries
from ulak.notify.model import POOL, kind_of
from ulak.notify.service import Notify
from ulak.notify.settings import NotifyOptions
from ulak.notify.template import Templates
from ulak.settings import Delivery, Settings
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.store import Tx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ulak.app import Ulak


Prune = Callable[[Tx], int]

_WITH_OWN_LIMIT = frozenset({"EMAIL", "WEBHOOK"})

# Tasks with the engine for each place where one can run: the second hides the way through the store.
AHEAD = 2


@dataclass(frozen=True, slots=True)
class NotifyRoom:
    service: Notify
    deliveries: Deliveries
    registry: Registry
    prunes: dict[str, Prune]


def notify_room(ulak: Ulak) -> NotifyRoom:
    """Register a handler for every type that some channel carries, and the service over them."""
    settings = ulak.settings
    endpoints = Endpoints(lambda: ulak.store)
    built_in = [point for point in BUILT_IN if point.name != "webhook"]  # ours knows the endpoints' secrets
    channels = [*discover(settings, built_in=built_in), _webhook(ulak, endpoints)]
    registry = Registry(channels)
    deliveries = Deliveries(registry, ulak.telemetry, endpoints, ulak.clock)
    types = _types(channels)
    for name in types:
        _register(ulak, name, deliveries)
    options = NotifyOptions.of(settings)
    service = Notify(options, _templates(settings), frozenset(types), lambda: (ulak.store, ulak.loops.gate), endpoints)
    prunes: dict[str, Prune] = {
        "notify_idempotency": partial(idempotency.prune, keep_millis=options.idempotency_millis),
        "notify_inbox": partial(inbox.prune, keep_millis=options.inbox_millis),
    }
    return NotifyRoom(service, deliveries, registry, prunes)


def _templates(settings: Settings) -> Templates:
    templates = Templates(default_language=settings.notify.language)
    templates.load()
    if settings.notify.templates:
        templates.load(Path(settings.notify.templates))
    return templates


@dataclass(frozen=True, slots=True)
class ComputeRoom:
    service: Compute
    lane: ProcessLane


def compute_room(ulak: Ulak) -> ComputeRoom:
    """The handlers of durable tasks, the process lane for any other kind, and what the engine shows."""
    section = ulak.settings.compute
    service = Compute(section, ulak.settings.spine.history_days, lambda: (ulak.store, ulak.loops))
    runs = Runs(service.engine, section.timeout_seconds)
    for task_type, kind in KINDS.items():
        ulak.handles(
            kind,
            concurrency=AHEAD * service.places(task_type),
            max_attempts=MOST_RETRIES + 1,
            # The engine ends a run in time; this is only for when it can't, and includes the wait for a worker.
            timeout_seconds=(AHEAD + 1) * section.timeout_seconds + 15,
            capacity=section.capacity,
            pool=COMPUTE_POOL,
        )(runs.run)
    ulak.telemetry.gauges(service.gauges)
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
        timeout_seconds=policy.timeout_seconds + (15 if name in _WITH_OWN_LIMIT else 0),
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
