"""Settings of the channels: how each one reaches the outside."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from ulak.settings.section import Section, TextList, also


class DeliveryPolicy(Section):
    """Settings of every channel: how often a delivery is tried, and how long it waits in between."""

    max_attempts: int = Field(12, ge=1, le=1000, description="Attempts before a notification is a dead letter.")
    retry_first_seconds: float = Field(5, gt=0, le=86_400, description="Delay after the first failed attempt.")
    retry_factor: float = Field(3, ge=1, le=10, description="Each later delay is this many times longer.")
    retry_cap_seconds: float = Field(21_600, gt=0, le=604_800, description="No delay is longer, jitter apart.")
    consumers: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Deliveries of this channel at once in one process.",
        json_schema_extra=also("NOTIFICATION_QUEUE_CONSUMER_THREADS"),
    )
    timeout_seconds: float = Field(30, gt=0, le=600, description="Longest time for one delivery.")


class Email(DeliveryPolicy):
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
    slots_per_destination: int = Field(
        10, ge=1, le=1000, description="Letters at once to the mail server, each over a connection of its own."
    )


class Provider(DeliveryPolicy):
    """Settings of every channel over a provider."""

    timeout_seconds: float = Field(15, gt=0, le=600, description="Longest time for one request, connecting included.")
    slots_per_destination: int = Field(100, ge=1, le=1000, description="Requests at once to the provider.")


class Sms(Provider):
    """Text messages over Twilio; simulated while no account is set."""

    simulated_delay_seconds: float = Field(0.1, ge=0, le=60, description="How long a simulated delivery takes.")
    url: str = Field("https://api.twilio.com", min_length=1, description="Address of Twilio's API.")
    account_sid: str = Field("", description="The account (AC…); empty simulates.")
    auth_token: SecretStr = Field(SecretStr(""), description="The account's token; it also proves status callbacks.")
    api_key_sid: str = Field("", description="An API key (SK…) to send with, instead of the account's token.")
    api_key_secret: SecretStr = Field(SecretStr(""), description="That API key's secret.")
    sender: str = Field("", description="The number or name to send from, or a messaging service (MG…).")
    status_callback: str = Field(
        "", description="URL that Twilio tells of deliveries; empty: /api/actions/receipts/twilio at http.public_url."
    )

    @property
    def simulated(self) -> bool:
        return not self.account_sid


class Push(Provider):
    """Push messages: FCM for tokens of apps, Web Push for browsers; simulated while neither is set."""

    simulated_delay_seconds: float = Field(0.12, ge=0, le=60, description="How long a simulated delivery takes.")
    url: str = Field("https://fcm.googleapis.com", min_length=1, description="Address of FCM's API.")
    service_account: SecretStr = Field(
        SecretStr(""),
        description="Google's service account for FCM: its JSON, or a reference such as ${file:fcm.json}.",
    )
    vapid_private_key: SecretStr = Field(
        SecretStr(""), description="The key that signs Web Push (VAPID): PEM, or base64url of the raw key."
    )
    vapid_subject: str = Field("", description="Whom a push service may ask, like mailto:ops@example.org.")
    ttl_seconds: int = Field(
        86_400, ge=0, le=2_419_200, description="How long a provider keeps a message that has no expiry of its own."
    )

    @property
    def simulated(self) -> bool:
        return not (self.service_account.get_secret_value() or self.vapid_private_key.get_secret_value())


class Whatsapp(Provider):
    """WhatsApp messages over Meta's Cloud API; simulated while no token is set."""

    simulated_delay_seconds: float = Field(0.12, ge=0, le=60, description="How long a simulated delivery takes.")
    url: str = Field("https://graph.facebook.com/v21.0", min_length=1, description="Address of the Graph API.")
    phone_number_id: str = Field("", description="Id of the number to send from.")
    access_token: SecretStr = Field(SecretStr(""), description="Token of the system user; empty simulates.")
    template: str = Field(
        "", description="Template for texts outside the 24-hour window; its one parameter is the text. Empty gives up."
    )
    template_language: str = Field("en_US", min_length=2, description="Language of that template.")
    app_secret: SecretStr = Field(SecretStr(""), description="The app's secret: it proves status callbacks.")
    verify_token: SecretStr = Field(SecretStr(""), description="The word that Meta repeats when it asks for the hook.")

    @property
    def simulated(self) -> bool:
        return not self.access_token.get_secret_value()


class Slack(Provider):
    """Slack: channels and people by a bot token, or incoming webhooks; simulated while neither is set."""

    simulated_delay_seconds: float = Field(0.1, ge=0, le=60, description="How long a simulated delivery takes.")
    url: str = Field("https://slack.com/api", min_length=1, description="Address of Slack's API.")
    token: SecretStr = Field(SecretStr(""), description="Bot token (xoxb-…) for recipients that are ids or names.")
    webhooks: bool = Field(False, description="Send to recipients that are incoming-webhook URLs without a token too.")
    signing_secret: SecretStr = Field(
        SecretStr(""), description="The app's signing secret: it proves what Slack sends."
    )

    @property
    def simulated(self) -> bool:
        return not (self.webhooks or self.token.get_secret_value())


class Apprise(Provider):
    """Services of the Apprise library (extra `ulak[apprise]`). It dials by itself, so only listed schemes pass."""

    schemes: TextList = Field(
        (), description="Schemes of recipients that may be used, such as tgram or discord; none switches it off."
    )


class Webhook(DeliveryPolicy):
    """Signed HTTP requests to the endpoints of others."""

    allow: TextList = Field(
        (), description="Private networks (CIDR) that may be called all the same; in the environment, between commas."
    )
    timeout_seconds: float = Field(15, gt=0, le=600, description="Longest time for one request, connecting included.")
    slots_per_destination: int = Field(8, ge=1, le=1000, description="Requests at once to one destination.")
    retry_after_cap_seconds: float = Field(
        3600, ge=1, le=604_800, description="A longer Retry-After from a destination is shortened to this."
    )

    @field_validator("allow")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ipaddress.ip_network(network)) for network in value)


class InApp(DeliveryPolicy):
    """Inboxes in the store itself."""


class Channels(Section):
    """One section per channel."""

    email: Email = Email()
    sms: Sms = Sms()
    push: Push = Push()
    webhook: Webhook = Webhook()
    whatsapp: Whatsapp = Whatsapp()
    slack: Slack = Slack()
    apprise: Apprise = Apprise()
    in_app: InApp = InApp()
    plugin: DeliveryPolicy = DeliveryPolicy()
