"""Settings of the channels: how each one reaches the outside."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from ulak.settings.section import Section


class Delivery(Section):
    """What every channel has: how often a delivery is tried, and how long it waits in between."""

    max_attempts: int = Field(12, ge=1, le=1000, description="Attempts before a notification is a dead letter.")
    retry_first_seconds: float = Field(5, gt=0, le=86_400, description="Delay after the first failed attempt.")
    retry_factor: float = Field(3, ge=1, le=10, description="Each later delay is this many times longer.")
    retry_cap_seconds: float = Field(21_600, gt=0, le=604_800, description="No delay is longer, jitter apart.")
    consumers: int = Field(100, ge=1, le=100_000, description="Deliveries of this channel at once in one process.")
    timeout_seconds: float = Field(30, gt=0, le=600, description="Longest time for one delivery.")


class Email(Delivery):
    """Mail over SMTP."""

    simulated: bool = Field(True, description="Only pretend to send; nothing leaves the machine.")
    simulated_delay_seconds: float = Field(0.15, ge=0, le=60, description="How long a simulated delivery takes.")
    host: str = Field("localhost", min_length=1, description="SMTP server.")
    port: int = Field(587, ge=1, le=65535, description="Port of the SMTP server.")
    tls: Literal["none", "starttls", "tls"] = Field(
        "starttls", description="Encryption: none, upgraded after connecting (starttls), or from the start (tls)."
    )
    username: str = Field("", description="User name at the SMTP server; empty logs in as nobody.")
    password: SecretStr = Field(SecretStr(""), description="Password at the SMTP server.")
    sender: str = Field("ulak@localhost", min_length=3, description="Address in the From header.")


class Sms(Delivery):
    """Text messages; simulated."""

    simulated_delay_seconds: float = Field(0.1, ge=0, le=60, description="How long a simulated delivery takes.")


class Push(Delivery):
    """Push messages; simulated."""

    simulated_delay_seconds: float = Field(0.12, ge=0, le=60, description="How long a simulated delivery takes.")


class Webhook(Delivery):
    """Signed HTTP requests to the endpoints of others."""

    allow: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Private networks (CIDR) that may be called all the same; in the environment, between commas."
    )
    timeout_seconds: float = Field(15, gt=0, le=600, description="Longest time for one request, connecting included.")
    slots_per_destination: int = Field(8, ge=1, le=1000, description="Requests at once to one destination.")
    retry_after_cap_seconds: float = Field(
        3600, ge=1, le=604_800, description="A longer Retry-After from a destination is shortened to this."
    )

    @field_validator("allow", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("allow")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ipaddress.ip_network(network)) for network in value)


class InApp(Delivery):
    """Inboxes in the store itself."""


class Channels(Section):
    """One section per channel."""

    email: Email = Email()
    sms: Sms = Sms()
    push: Push = Push()
    webhook: Webhook = Webhook()
    in_app: InApp = InApp()
    plugin: Delivery = Delivery()
