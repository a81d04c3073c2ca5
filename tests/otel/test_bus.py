"""A request on the bus brings its trace in a header; what goes out to the bus carries that of its cause."""

from __future__ import annotations

import os

import pytest
from confluent_kafka import Producer
from opentelemetry.trace import SpanKind

from tests.actions.conftest import Scripted
from tests.buses.conftest import bus, cluster, servers, until  # noqa: F401 - fixtures
from tests.buses.test_actions import EXECUTED, REQUESTED, Topics, ready_plan
from tests.otel.conftest import PARENT_ID, TRACE_ID, TRACEPARENT, id_of, parent_of, trace_of
from ulak import Ulak
from ulak.settings import Settings

HEADERS = [("traceparent", TRACEPARENT.encode()), ("tracestate", b"vendor=1"), ("other", b"\xff")]


@pytest.fixture
def kafka(servers) -> dict:  # noqa: F811 - a fixture
    return {"kind": "kafka", "kafka": {"servers": servers, "group": f"ulak-{os.urandom(4).hex()}"}}


def send(servers, value: bytes, headers) -> None:  # noqa: F811
    producer = Producer({"bootstrap.servers": ",".join(servers), "log_level": 0})
    producer.produce(REQUESTED, value=value, headers=headers)
    assert producer.flush(10) == 0


async def test_a_request_on_kafka_and_its_result_are_in_one_trace(address, kafka, servers, spans):  # noqa: F811
    ulak = spans.follow(Ulak(settings=Settings(store=address, bus=kafka), channels=[Scripted()]))
    topics = Topics(ulak)
    async with ulak:
        plan = await ready_plan(ulak)
        send(servers, topics.request(plan, "1"), HEADERS)
        await until(lambda: topics.got(EXECUTED))
    sent = spans.one("actions.push")
    created = next(one for one in spans.of("actions.request", SpanKind.PRODUCER) if id_of(one) == parent_of(sent))
    assert (trace_of(sent), trace_of(created), parent_of(created)) == (TRACE_ID, TRACE_ID, PARENT_ID)
    (told,) = topics.records[EXECUTED]
    assert dict(told.headers) == {
        "traceparent": f"00-{TRACE_ID}-{id_of(created)}-01".encode(),
        "tracestate": b"vendor=1",
    }


async def test_a_message_that_a_handler_publishes_carries_its_span(address, spans):
    ulak = spans.follow(Ulak(settings=Settings(store=address)))
    got = []

    async def take(batch):
        got.extend(batch)

    ulak.bus.listen("told", take)

    @ulak.handles("mail")
    async def mail(job):
        await ulak.bus.publish("told", {"of": "mail"})

    async with ulak:
        await ulak.bus.publish("told", {"of": "nobody"})
        await ulak.enqueue("mail")
        await until(lambda: len(got) == 2)
    attempt = spans.one("mail")
    assert got[0].headers == ()
    assert [name for name, _ in got[1].headers] == ["traceparent"]
    assert got[1].headers[0][1].decode().split("-")[1:3] == [trace_of(attempt), id_of(attempt)]


async def test_an_event_that_a_route_sends_carries_the_trace_of_its_job(address, spans):
    route = {"event": "done", "topic": "ended"}
    ulak = spans.follow(Ulak(settings=Settings(store=address, bus={"route": [route]})))
    got = []

    async def take(batch):
        got.extend(batch)

    ulak.bus.listen("ended", take)

    @ulak.handles("mail")
    async def mail(job): ...

    async with ulak:
        await ulak.enqueue("mail")
        await until(lambda: got)
    created = spans.one("mail", SpanKind.PRODUCER)
    assert dict(got[0].headers)["traceparent"].decode().split("-")[1:3] == [trace_of(created), id_of(created)]
