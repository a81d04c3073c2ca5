"""Settings of the bus: where events go out to topics, and where requests come from."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from ulak.settings.section import Section, TextList

_SERVER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
TOPIC = r"^[A-Za-z0-9._-]{1,249}$"


class Route(Section):
    """Which events go to which topic: `[[bus.route]]`, as often as needed."""

    event: str = Field(min_length=1, max_length=200, description="Name of an event; `*` stands for any part of it.")
    topic: str = Field(pattern=TOPIC, description="Topic that they go to.")
    key: str = Field("job", pattern=r"^(job|kind|name|data\.[A-Za-z0-9_]+)$", description="What keeps its order there.")
    cloudevents: bool = Field(False, description="As CloudEvents 1.0 (structured JSON).")


class Kafka(Section):
    """Where Kafka is, and as whom Ulak talks to it."""

    servers: TextList = Field(
        (), description='Brokers to ask first, like "kafka-1:9092"; in the environment, between commas.'
    )
    group: str = Field("ulak", min_length=1, max_length=200, description="Consumer group of all instances.")
    tls: bool = Field(False, description="Encrypt the connections.")
    ca_file: str = Field("", description="Certificates to trust instead of the system's; turns tls on.")
    sasl: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("", description="How to log in; empty: not.")
    username: str = Field("", description="User name for sasl.")
    password: SecretStr = Field(SecretStr(""), description="Password for sasl.")

    @field_validator("servers")
    @classmethod
    def _have_ports(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            _, _, port = one.rpartition(":")
            if not _SERVER.fullmatch(one) or not 0 < int(port) < 65_536:
                raise ValueError(f"{one!r:.100} is not a broker; write it like kafka-1:9092")
        return value

    @model_validator(mode="after")
    def _login_is_whole(self) -> Self:
        given = (bool(self.username), bool(self.password.get_secret_value()))
        if self.sasl and not all(given):
            raise ValueError(f"sasl {self.sasl} needs username and password; set both")
        if not self.sasl and any(given):
            raise ValueError("username and password are used with sasl alone; set sasl, like SCRAM-SHA-512")
        if self.sasl == "PLAIN" and not (self.tls or self.ca_file):
            raise ValueError("sasl PLAIN would send the password in plain text; set tls")
        return self


class Bus(Section):
    """Events that go out, and requests that come in."""

    kind: Literal["local", "kafka"] = Field("local", description="Inside this process, or Kafka.")
    source: str = Field("/ulak", min_length=1, max_length=200, description="Source of CloudEvents.")
    route: tuple[Route, ...] = Field((), description="Events that go to topics; one [[bus.route]] table each.")
    kafka: Kafka = Kafka()

    @model_validator(mode="after")
    def _kafka_has_servers(self) -> Self:
        if self.kind == "kafka" and not self.kafka.servers:
            raise ValueError("bus.kafka.servers is empty; name at least one broker")
        return self
