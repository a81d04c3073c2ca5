"""The seed's topics, end to end on both buses and every store: a request comes in, its results go out."""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.actions.conftest import Scripted, World
from tests.buses.conftest import until
from ulak import Ulak
from ulak.errors import Permanent
from ulak.settings import Settings

REQUESTED, EXECUTED, FAILED, DEAD = (
    "cinga.action.requested", "cinga.action.executed", "cinga.action.failed", "cinga.dlq.action",
)  # fmt: skip


class Topics:
    """What each topic got, of this test alone: they are shared by all who use the cluster."""

    def __init__(self, ulak: Ulak) -> None:
        self.mark = f"act-{os.urandom(6).hex()}"
        self.records: dict[str, list] = {EXECUTED: [], FAILED: [], DEAD: []}
        for topic, found in self.records.items():
            ulak.bus.listen(topic, self._taker(found))

    def _taker(self, found):
        async def take(batch):
            found.extend(one for one in batch if self.mark.encode() in one.value)

        return take

    def got(self, topic: str) -> list[dict]:
        return [json.loads(one.value) for one in self.records[topic]]

    def request(self, plan: int, key: str) -> bytes:
        return json.dumps(
            {
                "event": "action.execute.requested.v1",
                "meta": {"schema_version": 1, "trace_id": self.mark, "producer_service": "rule-service"},
                "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
                "data": {
                    "group_id": 12,
                    "rule_id": 114,
                    "action_plan_id": plan,
                    "evaluation_key": f"{self.mark}-{key}",
                },
            }
        ).encode()


async def ready_plan(ulak: Ulak) -> int:
    """A plan under an id that no other test uses: requests of others come from the shared topic too."""
    number = random.randrange(1_000_000, 1 << 40)
    steps = [{"step_order": 1, "channel_type": "push", "body": "b"}]
    await ulak.actions.plans.put(number, {"name": "Pump", "steps": steps})
    world = World(ulak)
    await world.route(number, await world.person(("push", "token-1")))
    return number


@pytest.fixture
def channel():
    return Scripted()


@pytest.fixture
def ulak(address, bus, channel):
    return Ulak(address, settings=Settings(store=address, bus=bus), channels=[channel])


async def test_a_request_is_executed_and_told_once_with_its_device_as_key(ulak, channel):
    topics = Topics(ulak)
    async with ulak:
        plan = await ready_plan(ulak)
        for _ in range(3):  # a repeat is the first run
            await ulak.bus.publish(REQUESTED, topics.request(plan, "1"), key="400000011D081B70")
        await until(lambda: len(topics.got(EXECUTED)) >= 1)
        await ulak.bus.publish(REQUESTED, topics.request(plan, "2"), key="400000011D081B70")
        await until(lambda: len(topics.got(EXECUTED)) >= 2)
    assert len(topics.got(EXECUTED)) == 2
    first = topics.got(EXECUTED)[0]
    assert set(first) == {"event", "meta", "context", "data", "error"}
    assert (first["event"], first["meta"]["trace_id"]) == ("action.executed.v1", topics.mark)
    assert first["data"]["delivery_status"] == "sent"
    assert {one.key for one in topics.records[EXECUTED]} == {b"400000011D081B70"}


async def test_a_failure_is_told_on_the_failed_topic_and_as_a_dead_letter(ulak, channel):
    channel.answers = [Permanent("gone", code="FCM_UNREGISTERED")]
    topics = Topics(ulak)
    async with ulak:
        plan = await ready_plan(ulak)
        await ulak.bus.publish(REQUESTED, topics.request(plan, "1"))
        await until(lambda: topics.got(FAILED) and topics.got(DEAD))
    [failed], [dead] = topics.got(FAILED), topics.got(DEAD)
    assert (failed["error"]["failed_stage"], failed["error"]["error_code"]) == ("action_execute", "FCM_UNREGISTERED")
    assert (dead["error_code"], dead["reason"], dead["step_order"]) == ("FCM_UNREGISTERED", "non_retryable", 1)


async def test_a_request_that_http_would_refuse_fails_at_request_validate(ulak):
    topics = Topics(ulak)
    async with ulak:
        await ulak.bus.publish(REQUESTED, topics.request(4711, "1"))
        await until(lambda: len(topics.got(FAILED)) >= 1)
    [failed] = topics.got(FAILED)
    assert failed["error"]["failed_stage"] == "request_validate"
    assert (failed["data"]["step_order"], failed["data"]["channel_type"]) == (None, None)


async def test_bytes_that_are_no_request_are_told_on_the_dead_letter_topic(ulak):
    topics = Topics(ulak)
    topics.mark = "REQUEST_UNREADABLE"
    async with ulak:
        await ulak.bus.publish(REQUESTED, b"\xff not a request")
        await until(lambda: len(topics.got(DEAD)) >= 1)
    assert topics.got(DEAD)[0]["reason"] == "poison"
