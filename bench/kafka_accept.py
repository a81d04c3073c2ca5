"""Requests from Kafka to durable runs: how many a second one process accepts. The brokers are librdkafka's own mock."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from statistics import median

import uvloop
from confluent_kafka import Producer

from bench.figure import Bench, Row
from bench.notify_server import prepare
from bench.place import in_database, in_file
from tests.buses.mock_cluster import MockCluster
from ulak import Ulak
from ulak.settings import Settings

REQUESTS, QUICK_REQUESTS = 20_000, 3_000
MIN_RATE = {"SQLite": 5_000, "PostgreSQL": 3_000}
TOPIC = "cinga.action.requested"
PLAN = 21
# It waits, so that only the accepting is measured.
STEPS = [{"step_order": 1, "channel_type": "audit", "body": "b", "delay_seconds": 3600}]


def rows(bench: Bench) -> Iterator[Row]:
    number = bench.scaled(REQUESTS, QUICK_REQUESTS)
    for name, place in (("SQLite", in_file), ("PostgreSQL", lambda *given: in_database(bench.server, *given))):
        rates = [place(accept, number) for _ in range(bench.rounds)]
        rate = median(rates)
        yield Row(
            f"{name}: requests from Kafka to durable runs", "1/s", rate,
            target=f"≥ {MIN_RATE[name]:,}/s", met=rate >= MIN_RATE[name], detail={"samples": rates, "requests": number},
        )  # fmt: skip


def accept(place: str, number: int) -> float:
    prepare()
    cluster = MockCluster()
    try:
        return uvloop.run(_accept(place if "://" in place else f"sqlite:///{place}", cluster.servers, number))
    finally:
        cluster.close()


async def _accept(store: str, servers: list[str], number: int) -> float:
    await asyncio.to_thread(_ask, servers, number)
    bus = {"kind": "kafka", "kafka": {"servers": servers, "group": f"bench-{os.urandom(4).hex()}"}}
    ulak = Ulak(settings=Settings(store=store, bus=bus, actions={"capacity": 2 * number}))
    async with Ulak(settings=Settings(store=store), work=False) as before:
        await before.actions.plans.put(PLAN, {"name": "Bench", "steps": STEPS})
    async with ulak:
        intake = ulak.bus._intakes[TOPIC]
        began = await _until(intake, 1)
        first = intake.taken
        ended = await _until(intake, number)
    return (number - first) / (ended - began)


async def _until(intake, number: int) -> float:
    async with asyncio.timeout(180):
        while intake.taken < number:
            await asyncio.sleep(0.001)
    return time.perf_counter()


def _ask(servers: list[str], number: int) -> None:
    producer = Producer(
        {"bootstrap.servers": ",".join(servers), "log_level": 0, "queue.buffering.max.messages": number}
    )
    for one in range(number):
        data = {"action_plan_id": PLAN, "evaluation_key": f"bench-{one}", "variables": {"n": one}}
        body = json.dumps(
            {"event": "action.execute.requested.v1", "context": {"device_id": f"D{one % 500}"}, "data": data}
        )
        producer.produce(TOPIC, value=body.encode(), key=f"D{one % 500}".encode())
        producer.poll(0)
    assert producer.flush(60) == 0
