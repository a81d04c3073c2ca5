"""Settings with their defaults and bounds, and how they are read. Every room's section lives here, one file each.

A leaf: it imports no room, and a room imports only its own section.
"""

from __future__ import annotations

from ulak.settings.bus import Bus, Kafka, Route
from ulak.settings.changes import Announcement, Changes, ListSource, Rule
from ulak.settings.channels import (
    Apprise,
    Channels,
    DeliveryPolicy,
    Email,
    InApp,
    Provider,
    Push,
    Slack,
    Sms,
    Webhook,
    Whatsapp,
)
from ulak.settings.client import Client
from ulak.settings.compute import Compute
from ulak.settings.http import Http
from ulak.settings.loader import LoadedSettings, load
from ulak.settings.log import Log
from ulak.settings.notify import Notify
from ulak.settings.section import Section, also
from ulak.settings.spine import Spine
from ulak.settings.telemetry import Tracing
from ulak.settings.tree import Settings
from ulak.settings.worker import Worker

__all__ = [
    "Announcement",
    "Apprise",
    "Bus",
    "Changes",
    "Channels",
    "Client",
    "Compute",
    "DeliveryPolicy",
    "Email",
    "Http",
    "InApp",
    "Kafka",
    "ListSource",
    "LoadedSettings",
    "Log",
    "Notify",
    "Provider",
    "Push",
    "Route",
    "Rule",
    "Section",
    "Settings",
    "Slack",
    "Sms",
    "Spine",
    "Tracing",
    "Webhook",
    "Whatsapp",
    "Worker",
    "also",
    "load",
]
