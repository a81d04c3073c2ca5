"""What [bus.kafka] says reaches librdkafka in its own words, and what makes no sense is refused at the start."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from pydantic import ValidationError

from ulak.buses.kafka import KafkaBus, client_config
from ulak.errors import Misconfigured
from ulak.settings.bus import Kafka

SERVERS = ("kafka-1:9092", "[::1]:9093")
LOGIN = {"username": "ulak", "password": "s3cret"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"security.protocol": "PLAINTEXT"}),
        ({"tls": True}, {"security.protocol": "SSL"}),
        (
            {"sasl": "SCRAM-SHA-512", **LOGIN},
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"},
        ),
        ({"sasl": "PLAIN", "tls": True, **LOGIN}, {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}),
        (
            {"sasl": "SCRAM-SHA-256", "tls": True, **LOGIN},
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"},
        ),
    ],
)
def test_settings_reach_the_client_exactly_and_it_takes_them(given, expected):
    config = client_config(Kafka(servers=SERVERS, **given))
    login = {"sasl.username": "ulak", "sasl.password": "s3cret"} if "sasl" in given else {}
    always = {"bootstrap.servers": "kafka-1:9092,[::1]:9093", "client.id": "ulak", "log_level": 2}
    assert config == {**always, **login, **expected}
    Producer(config)


def test_certificates_of_ones_own_turn_encryption_on(tmp_path):
    config = client_config(Kafka(servers=SERVERS, ca_file=str(tmp_path / "ca.pem")))
    assert (config["security.protocol"], config["ssl.ca.location"]) == ("SSL", str(tmp_path / "ca.pem"))


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"sasl": "SCRAM-SHA-512"}, "username and password"),
        ({"sasl": "SCRAM-SHA-512", "username": "ulak"}, "username and password"),
        ({"username": "ulak", "password": "s3cret"}, "set sasl"),
        ({"sasl": "PLAIN", **LOGIN}, "plain text"),
        ({"sasl": "GSSAPI", **LOGIN}, "SCRAM-SHA-256"),
        ({"servers": ("http://kafka-1:9092",)}, "like kafka-1:9092"),
        ({"servers": ("kafka-1",)}, "like kafka-1:9092"),
        ({"servers": ("kafka-1:99999",)}, "like kafka-1:9092"),
        ({"servers": ("kafka-1:9092\n",)}, "like kafka-1:9092"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_next_step(given, word):
    with pytest.raises(ValidationError) as caught:
        Kafka(**{"servers": SERVERS, **given})
    assert word in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_certificates_that_are_not_there_stop_the_start_and_not_the_relay(tmp_path):
    with pytest.raises(Misconfigured, match=r"bus\.kafka.*ssl\.ca\.location"):
        KafkaBus(Kafka(servers=SERVERS, ca_file=str(tmp_path / "nowhere.pem")))
