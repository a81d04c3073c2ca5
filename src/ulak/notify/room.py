"""The notify room: a handler for every type that some channel carries, the service over them, and `post` for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ulak.backoff import Backoff
from ulak.channels.channel import NotificationType
from ulak.channels.destination import Destinations
from ulak.channels.registry import Registry
from ulak.log import get_logger
from ulak.notify import attempts, idempotency, inbox, reference
from ulak.notify.decide import destination_of
from ulak.notify.jobs import Deliveries
from ulak.notify.ledger import balance
from ulak.notify.model import kind_of
from ulak.notify.service import Notify
from ulak.notify.settings import NotifyOptions
from ulak.settings import DeliveryPolicy, Settings
from ulak.settings.channels import Webhook
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.handler import Handler
from ulak.spine.room import Host, Room
from ulak.spine.telemetry import GaugePoint
from ulak.spine.units.sample import Sample
from ulak.templates.template import Templates

log = get_logger("ulak.notify")

SLOW_RECEIVERS = 8
_WITH_OWN_LIMIT = frozenset({"EMAIL", "APPRISE"})
GAUGES = {
    "ulak_notify_notifications": "Notifications since the store was made, by what became of them; `accepted` is all.",
    "ulak_notify_conservation_difference": "Accepted notifications that are nowhere; other than 0 is a defect.",
}


def notify_room(host: Host) -> Room[Notify]:
    settings, registry = host.settings, host.channels
    deliveries = Deliveries(host)
    types = _types(registry)
    _check_channels(registry, types)
    options = NotifyOptions.of(settings)
    service = Notify(options, _templates(settings), frozenset(types), host)
    return Room(
        "notify",
        service,
        handlers=tuple(_handler(settings, name, deliveries, options.destinations) for name in types),
        ports={"post": service.post, "check_message": service.check_message},
        prunes={
            "notify_idempotency": partial(idempotency.prune, keep_millis=options.idempotency_millis),
            "notify_inbox": partial(inbox.prune, keep_millis=options.inbox_millis),
            "notify_reference": partial(reference.prune, keep_millis=options.history_millis),
            "notify_attempt": partial(attempts.prune, keep_millis=options.history_millis),
        },
        gauges=lambda: _gauges(host.sample),
        start=partial(_check_consumers, settings.channels.webhook),
    )


async def _check_consumers(webhook: Webhook) -> None:
    """Warn of a start in which a few slow receivers could take every consumer, and so hold up all others."""
    if webhook.consumers <= SLOW_RECEIVERS * webhook.slots_per_destination:
        log.warning(
            "few_webhook_consumers",
            note=f"{SLOW_RECEIVERS} slow receivers may take all channels.webhook.consumers ({webhook.consumers}), "
            f"with {webhook.slots_per_destination} slots each; raise consumers or lower slots_per_destination",
        )


def _templates(settings: Settings) -> Templates:
    templates = Templates(default_language=settings.notify.language)
    templates.load()
    if settings.notify.templates:
        templates.load(Path(settings.notify.templates))
    return templates


def _types(registry: Registry) -> list[str]:
    """The types that Ulak knows, and those of other channels: what one lists in `types`, and its own name."""
    known = {name.value for name in NotificationType}
    for channel in registry:
        listed = {channel.name.upper(), *getattr(channel, "types", ())}
        known |= {name for name in listed if name == name.upper() and channel.can_handle(name)}
    return sorted(known)


def _check_channels(registry: Registry, types: Sequence[str]) -> None:
    """A type that Ulak does not know has to be named; otherwise its channel is never asked."""
    for channel in registry:
        if not any(map(channel.can_handle, types)):
            log.warning(
                "channel_without_type",
                channel=channel.name,
                note="it carries no known type; list those that it carries in its attribute types, in capitals",
            )


def _handler(settings: Settings, name: str, deliveries: Deliveries, destinations: Destinations) -> Handler:
    policy = _policy(settings, name)
    return Handler(
        kind_of(name),
        _deliver(name, deliveries),
        concurrency=policy.consumers,
        max_attempts=policy.max_attempts,
        # Longer than the channel's own limit, so that the channel can still say what it knows of a late attempt.
        timeout_seconds=policy.timeout_seconds + (15 if name in _WITH_OWN_LIMIT | destinations.types else 0),
        backoff=Backoff(policy.retry_first_seconds, policy.retry_factor, policy.retry_cap_seconds),
        capacity=settings.notify.capacity,
        admission=settings.notify.admission,
        wait_seconds=settings.notify.wait_seconds,
        breaker=BreakerPolicy() if name in destinations.types else None,
        destination=partial(destination_of, destinations),
        consumer=f"notification-consumer-{name.lower().replace('_', '-')}",
    )


def _deliver(name: str, deliveries: Deliveries) -> Callable[..., Any]:
    return {"IN_APP": deliveries.deliver_in_app, "WEBHOOK": deliveries.deliver_webhook}.get(name, deliveries.deliver)


def _policy(settings: Settings, name: str) -> DeliveryPolicy:
    section = getattr(settings.channels, name.lower(), settings.channels.plugin)
    return section if isinstance(section, DeliveryPolicy) else settings.channels.plugin


def _gauges(sample: Sample) -> Iterator[GaugePoint]:
    """accepted = delivered + failed + dead + held + cancelled + expired + waiting, in one sample."""
    books = balance(sample.tally, sample.live)
    for status, number in asdict(books).items():
        yield _point("ulak_notify_notifications", number, status=status)
    yield _point("ulak_notify_conservation_difference", books.difference)


def _point(name: str, value: float, **labels: str) -> GaugePoint:
    return GaugePoint(name, GAUGES[name], labels, value)
