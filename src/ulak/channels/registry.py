"""Which channel carries which type: the first that says it can, remembered; and where channels come from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ulak.channels.channel import Channel
from ulak.channels.endpoint import Endpoints
from ulak.channels.webhook import WebhookChannel, WebhookOptions
from ulak.errors import Misconfigured
from ulak.log import get_logger
from ulak.spine.room import Host

log = get_logger("ulak.channels")

GROUP = "ulak.channels"
SIMULATED = "simulated-"
GOODBYE_SECONDS = 2.0

Factory = Callable[[Any], Channel | None]
"""Makes a channel out of the settings; None when the settings leave it switched off."""

# The built-ins come in by the door that plug-ins use. Real senders stand before their simulations.
BUILT_IN = tuple(
    EntryPoint(name=name, value=f"ulak.channels.{place}", group=GROUP)
    for name, place in (
        ("email", "email:from_settings"),
        ("twilio", "twilio:from_settings"),
        ("push", "push:from_settings"),
        ("whatsapp", "whatsapp:from_settings"),
        ("slack", "slack:from_settings"),
        ("apprise", "apprise:from_settings"),
        ("simulated-email", "simulated:email"),
        ("simulated-sms", "simulated:sms"),
        ("simulated-push", "simulated:push"),
        ("simulated-whatsapp", "simulated:whatsapp"),
        ("simulated-slack", "simulated:slack"),
    )
)


class Registry:
    """Channels in order of preference, and the webhook endpoints that one of them knows by their secrets."""

    def __init__(self, channels: Iterable[Channel], endpoints: Endpoints | None = None) -> None:
        self._channels = tuple(channels)
        self._found: dict[str, Channel] = {}
        self.endpoints = endpoints

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._channels)

    @property
    def names(self) -> list[str]:
        return [channel.name for channel in self._channels]

    @property
    def simulated(self) -> list[str]:
        """The types of which nothing leaves the machine, by their sections of the settings."""
        return [name.removeprefix(SIMULATED) for name in self.names if name.startswith(SIMULATED)]

    def find(self, notification_type: str) -> Channel:
        found = self._found.get(notification_type)
        if found is None:
            found = self._found[notification_type] = self._first(notification_type)
        return found

    def _first(self, notification_type: str) -> Channel:
        for channel in self._channels:
            if channel.can_handle(notification_type):
                return channel
        raise Misconfigured(
            f"No channel can handle the notification type {notification_type!r}. "
            f"Registered channels: {', '.join(self.names) or 'none'}. Switch one on under [channels] in the settings, "
            f"or install a plug-in for it (entry point group {GROUP!r}; see docs/howto/add-a-channel.md)."
        )

    async def close(self) -> None:
        """Let each say goodbye. One that hangs or fails must not keep a stop from its end."""
        await asyncio.gather(*map(_part_with, self._channels))


async def _part_with(channel: Channel) -> None:
    try:
        async with asyncio.timeout(GOODBYE_SECONDS):
            await channel.close()
    except Exception as error:  # noqa: BLE001 - a plug-in's may raise anything
        log.warning("channel_not_closed", channel=channel.name, error=f"{type(error).__name__}: {error}")


def make_registry(host: Host, own: Sequence[Channel] = ()) -> Registry:
    """The channels of one Ulak. Its user's own come first, then plug-ins, so that each can replace a built-in."""
    endpoints = Endpoints(host)
    for channel in own:
        _check(channel, "Ulak(channels=[…])")
    return Registry([*own, *discover(host.settings), _webhook(host, endpoints)], endpoints)


def tell_simulated(registry: Registry) -> None:
    """Log which channels only pretend to send; for the start of a process that works."""
    if registry.simulated:
        log.info("simulated", channels=registry.simulated, note="nothing of these leaves the machine; see [channels]")


def _webhook(host: Host, endpoints: Endpoints) -> WebhookChannel:
    section = host.settings.channels.webhook
    options = WebhookOptions(
        allow=tuple(section.allow),
        timeout_seconds=section.timeout_seconds,
        retry_after_cap_seconds=section.retry_after_cap_seconds,
        connections=section.consumers,
    )
    return WebhookChannel(options, secrets=endpoints.secrets, clock=host.clock)


def discover(settings: Any, *, built_in: Iterable[EntryPoint] = BUILT_IN) -> list[Channel]:
    """Every installed channel that the settings switch on. Plug-ins come first, so that one can replace a built-in."""
    installed = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    made = (_make(point, settings) for point in (*installed, *built_in))
    return [channel for channel in made if channel is not None]


def _make(point: EntryPoint, settings: Any) -> Channel | None:
    try:
        factory: Factory = point.load()
    except (ImportError, AttributeError) as error:
        raise Misconfigured(
            f"The channel {point.name!r} ({point.value}) can't be loaded: {error}. Repair or uninstall its package."
        ) from error
    channel = factory(settings)
    if channel is not None:
        _check(channel, f"The channel {point.name!r} ({point.value})")
    return channel


def _check(channel: object, origin: str) -> None:
    if isinstance(channel, type) or not isinstance(channel, Channel):
        what = f"the class {channel.__name__}" if isinstance(channel, type) else f"a {type(channel).__name__}"
        raise Misconfigured(
            f"{origin} gave {what}, which is not a channel: it needs name, can_handle, handle and close."
        )
