"""What can be set, its defaults and bounds, and how it is read. Every room's section lives here, one file each.

A leaf: it imports no room, and a room imports only its own section.
"""

from __future__ import annotations

from ulak.settings.channels import Channels, Delivery, Email, InApp, Push, Sms, Webhook
from ulak.settings.client import Client
from ulak.settings.compute import Compute
from ulak.settings.http import Http
from ulak.settings.loader import Loaded, load
from ulak.settings.log import Log
from ulak.settings.notify import Notify
from ulak.settings.section import Section
from ulak.settings.spine import Spine
from ulak.settings.tree import Settings
from ulak.settings.worker import Worker

__all__ = [
    "Channels",
    "Client",
    "Compute",
    "Delivery",
    "Email",
    "Http",
    "InApp",
    "Loaded",
    "Log",
    "Notify",
    "Push",
    "Section",
    "Settings",
    "Sms",
    "Spine",
    "Webhook",
    "Worker",
    "load",
]
