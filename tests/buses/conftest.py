"""An Ulak on each kind of store with each kind of bus; Kafka is librdkafka's mock cluster, or a real one if named."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.buses.apache_kafka import JARS, NAMED, ApacheKafka
from tests.buses.mock_cluster import MockCluster
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.settings import Settings

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
PATIENCE_SECONDS = 30.0
# Read now: while a test runs, the environment has nothing of Ulak in it.
NAMED_KAFKA, KAFKA_JARS = os.environ.get(NAMED), os.environ.get(JARS)


@pytest.fixture(scope="session")
def cluster():
    """The brokers, and who can take them away; nobody where they were named."""
    if NAMED_KAFKA:
        yield NAMED_KAFKA.split(","), None
        return
    made = ApacheKafka(KAFKA_JARS) if KAFKA_JARS else MockCluster()
    make_topics(made.servers, *(f"cinga.{name}" for name in ("action.requested", "action.executed", "action.failed")))
    make_topics(made.servers, "cinga.dlq.action")
    yield made.servers, made
    made.close()


@pytest.fixture
def servers(cluster):
    return cluster[0]


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    with contextlib.ExitStack() as stack:
        yield {
            "sqlite": lambda: f"sqlite:///{tmp_path}/ulak.db",
            "postgres": lambda: stack.enter_context(fresh_database()),
        }[request.param]()


@pytest.fixture(params=["local", "kafka"])
def bus(request) -> dict[str, Any]:
    """The bus section of the settings, of each kind in turn."""
    if request.param == "local":
        return {"kind": "local"}
    servers = request.getfixturevalue("servers")
    return {"kind": "kafka", "kafka": {"servers": servers, "group": f"ulak-{os.urandom(4).hex()}"}}


@pytest.fixture
def topic(request) -> Callable[[str], str]:
    """A topic that no other test uses; where a cluster is used, it is there already, as in real life."""
    mark, made = os.urandom(4).hex(), set[str]()
    on_kafka = "bus" not in request.fixturenames or request.getfixturevalue("bus")["kind"] == "kafka"
    servers = request.getfixturevalue("servers") if on_kafka else None

    def of(name: str) -> str:
        found = f"{name}.{mark}"
        if servers is not None and found not in made:
            make_topics(servers, found)
            made.add(found)
        return found

    return of


def make_topics(servers: list[str], *names: str) -> None:
    """Brokers make a topic that a producer asks for."""
    producer = Producer({"bootstrap.servers": ",".join(servers), "log_level": 0})
    for name in names:
        producer.list_topics(name, timeout=10)


def build(address: str, bus: dict[str, Any], **sections: Any) -> Ulak:
    return Ulak(address, settings=Settings(store=address, bus=bus, **sections))


async def until(true: Callable[[], bool]) -> None:
    """Real brokers, threads and sockets take their time: look until it is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.02)


def pytest_report_header() -> str:
    """So that nobody takes a run on the mock cluster for one on Kafka."""
    return f"kafka: {NAMED_KAFKA or (KAFKA_JARS and f'Apache Kafka from {KAFKA_JARS}') or 'librdkafka mock cluster'}"
