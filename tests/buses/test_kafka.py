"""Kafka itself: others' clients read our topics, brokers go away and come back, processes are killed, groups shift."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.buses.conftest import build, until
from tests.buses.mock_cluster import MockCluster
from ulak.buses.consumer import KafkaConsumer
from ulak.buses.kafka import client_config
from ulak.errors import Refused
from ulak.settings.bus import Kafka

OFFSET_COMMIT, REBALANCE_IN_PROGRESS = 8, 27
UNKNOWN_TOPIC, TOPIC_AUTHORIZATION_FAILED = 3, 29
CHILD = Path(__file__).with_name("child.py")


@pytest.fixture
def kafka(servers):
    return {"kind": "kafka", "kafka": {"servers": servers, "group": f"ulak-{os.urandom(4).hex()}"}}


@pytest.fixture
def brokers(cluster):
    """Who can take the brokers away and bring them back."""
    if cluster[1] is None:
        pytest.skip("a cluster that was named can't be stopped from here")
    return cluster[1]


@pytest.fixture
def mock(brokers):
    if not isinstance(brokers, MockCluster):
        pytest.skip("only the mock cluster answers a request with an error of our choice")
    return brokers


async def read(servers, topic, number):
    """So many records of a topic, by a client that is not ours."""
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        found = []
        async with asyncio.timeout(30):
            while len(found) < number:
                found.append(await consumer.getone())
        return found
    finally:
        await consumer.stop()


def numbers(found):
    return [json.loads(one.value)["n"] for one in found]


def waiting(ulak):
    """What is kept for topics that do not take it, as /metrics tells."""
    return {
        point.labels["topic"]: point.value for point in ulak.bus.gauges() if point.name == "ulak_bus_messages_waiting"
    }


def limit_messages(servers, topic, size):
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    )
    client = AdminClient({"bootstrap.servers": ",".join(servers)})  # which must live until it has its answer
    [altered] = client.incremental_alter_configs([resource]).values()
    altered.result(10)


async def ask(servers, topic, bodies):
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        for body in bodies:
            await producer.send_and_wait(topic, body)
    finally:
        await producer.stop()


async def test_anothers_client_reads_what_we_publish(servers, kafka, topic):
    async with build("memory:", kafka) as ulak:
        for number in range(5):
            await ulak.bus.publish(topic("t"), {"n": number}, key="k")
        found = await read(servers, topic("t"), 5)
    assert [json.loads(one.value)["n"] for one in found] == list(range(5))
    assert {one.key for one in found} == {b"k"}


async def test_cloud_events_say_so_in_their_content_type(servers, kafka, topic):
    route = {"event": "accepted", "topic": topic("jobs"), "cloudevents": True}
    async with build("memory:", {**kafka, "route": [route]}) as ulak:
        await ulak.enqueue("unknown.kind")
        [found] = await read(servers, topic("jobs"), 1)
    assert dict(found.headers)["content-type"].startswith(b"application/cloudevents+json")


async def test_brokers_that_go_away_and_come_back_lose_nothing(servers, brokers, kafka, topic):
    async with build("memory:", kafka) as ulak:
        await ulak.bus.publish(topic("t"), {"n": 0}, key="k")
        await read(servers, topic("t"), 1)
        brokers.down()
        for number in range(1, 6):
            await ulak.bus.publish(topic("t"), {"n": number}, key="k")
        await until(lambda: list(ulak.bus.reasons()) != [])  # which /readyz tells
        await asyncio.to_thread(brokers.up)
        found = await read(servers, topic("t"), 6)
        await until(lambda: ulak.bus._relay.trouble is None)
    assert [json.loads(one.value)["n"] for one in found] == list(range(6))


@pytest.mark.parametrize("error", [UNKNOWN_TOPIC, TOPIC_AUTHORIZATION_FAILED])
async def test_a_topic_that_refuses_holds_up_no_other_and_gets_all_in_order_when_it_is_well(
    servers, mock, kafka, topic, error
):
    bad, good = topic("bad"), topic("good")
    mock.tell(f"refuse {bad} {error}")
    async with build("memory:", kafka) as ulak:
        for number in range(5):
            await ulak.bus.publish(bad, {"n": number}, key="k")
            await ulak.bus.publish(good, {"n": number}, key="k")
        assert numbers(await read(servers, good, 5)) == list(range(5))
        await until(lambda: waiting(ulak) == {bad: 5})
        assert any(bad in reason for reason in ulak.bus.reasons())  # which /readyz tells
        await ulak.bus.publish(bad, {"n": 5}, key="k")
        await until(lambda: waiting(ulak) == {bad: 6})
        mock.tell(f"refuse {bad} 0")
        assert numbers(await read(servers, bad, 6)) == list(range(6))
        await until(lambda: waiting(ulak) == {} and list(ulak.bus.reasons()) == [])
        await ulak.bus.publish(bad, {"n": 6}, key="k")
        assert numbers(await read(servers, bad, 7)) == list(range(7))


async def test_a_message_that_is_too_large_holds_up_its_topic_alone_and_is_kept(servers, kafka, topic, monkeypatch):
    monkeypatch.setattr("ulak.buses.kafka.client_config", lambda one: {**client_config(one), "message.max.bytes": 2000})
    async with build("memory:", kafka) as ulak:
        await ulak.bus.publish(topic("t"), {"n": 0}, key="k")
        await ulak.bus.publish(topic("t"), {"n": 1, "much": "x" * 5000}, key="k")
        await ulak.bus.publish(topic("t"), {"n": 2}, key="k")
        await ulak.bus.publish(topic("other"), {"n": 3}, key="k")
        assert numbers(await read(servers, topic("other"), 1)) == [3]
        await until(lambda: waiting(ulak) == {topic("t"): 2})
        assert numbers(await read(servers, topic("t"), 1)) == [0]
        ulak.bus._bus._resender._config["message.max.bytes"] = 100_000
        assert numbers(await read(servers, topic("t"), 3)) == [0, 1, 2]
        await until(lambda: waiting(ulak) == {})


async def test_a_limit_of_the_brokers_that_is_raised_lets_the_message_go(servers, brokers, kafka, topic):
    if isinstance(brokers, MockCluster):
        pytest.skip("the mock cluster's topics have no settings")
    limit_messages(servers, topic("t"), 1000)
    async with build("memory:", kafka) as ulak:
        for number, size in enumerate([10, 5000, 10]):
            await ulak.bus.publish(topic("t"), {"n": number, "much": "x" * size}, key="k")
        await ulak.bus.publish(topic("other"), {"n": 3}, key="k")
        assert numbers(await read(servers, topic("other"), 1)) == [3]
        await until(lambda: waiting(ulak) == {topic("t"): 2})
        limit_messages(servers, topic("t"), 100_000)
        assert numbers(await read(servers, topic("t"), 3)) == [0, 1, 2]
        await until(lambda: waiting(ulak) == {})


async def test_many_that_waited_go_out_in_order_while_new_ones_come(servers, mock, kafka, topic):
    bad = topic("bad")
    mock.tell(f"refuse {bad} {UNKNOWN_TOPIC}")
    async with build("memory:", kafka) as ulak:
        for number in range(300):
            await ulak.bus.publish(bad, {"n": number}, key="k")
        await until(lambda: waiting(ulak) == {bad: 300})
        mock.tell(f"refuse {bad} 0")
        for number in range(300, 600):
            await ulak.bus.publish(bad, {"n": number}, key="k")
        assert numbers(await read(servers, bad, 600)) == list(range(600))
        await until(lambda: waiting(ulak) == {})


async def test_a_commit_that_a_rebalance_refuses_is_no_error(servers, mock, kafka, topic):
    taken = []

    async def take(batch):
        taken.extend(one.value for one in batch)

    ulak = build("memory:", kafka)
    ulak.bus.listen(topic("t"), take)
    async with ulak:
        mock.tell(f"fail {OFFSET_COMMIT} {REBALANCE_IN_PROGRESS} 1")
        await ask(servers, topic("t"), [b'{"n": 1}'])
        await until(lambda: bool(taken))
        await ask(servers, topic("t"), [b'{"n": 2}'])
        await until(lambda: b'{"n": 2}' in taken)


async def test_at_our_bound_partitions_pause_and_the_group_stays(servers, kafka, topic):
    room, seen = [False], []
    ulak = build("memory:", kafka)

    async def accept(bodies, origin=None):
        seen.append(len(bodies))
        if not room[0]:
            return [Refused("full") for _ in bodies]
        return list(bodies)

    async def keep(*_):
        raise AssertionError

    ulak.bus.accept_from(topic("t"), accept, keep)
    async with ulak:
        await ask(servers, topic("t"), [json.dumps({"n": n}).encode() for n in range(10)])
        await until(lambda: any(one.paused for one in ulak.bus._bus._consumers))
        room[0] = True
        await until(lambda: ulak.bus._intakes[topic("t")].taken == 10)
        await until(lambda: not any(one.paused for one in ulak.bus._bus._consumers))


async def test_bytes_that_can_not_be_read_are_kept_with_their_place_and_hold_up_nobody(servers, kafka, topic):
    kept, accepted = [], []
    ulak = build("memory:", kafka)

    async def accept(bodies, origin=None):
        accepted.extend(bodies)
        return list(bodies)

    async def keep(body, place, partition, offset):
        kept.append((body, place))

    ulak.bus.accept_from(topic("t"), accept, keep)
    async with ulak:
        await ask(servers, topic("t"), [b"\xff\x00", b"[1]", b'{"n": 1}', b""])
        await until(lambda: len(kept) == 3 and len(accepted) == 1)
    assert accepted == [b'{"n": 1}']
    assert {one for _, one in kept} == {topic("t")}


async def test_a_consumer_that_an_odd_error_ends_is_followed_by_another(kafka, topic, monkeypatch):
    monkeypatch.setattr("ulak.buses.kafka.AGAIN_SECONDS", 0.01)
    begin, failures, taken = KafkaConsumer._begin, [RuntimeError("odd")], []

    def fail_once(consumer, messages):
        if messages and failures:
            raise failures.pop()
        begin(consumer, messages)

    async def take(batch):
        taken.extend(json.loads(one.value) for one in batch)

    monkeypatch.setattr(KafkaConsumer, "_begin", fail_once)
    ulak = build("memory:", kafka)
    ulak.bus.listen(topic("t"), take)
    async with ulak:
        await ulak.bus.publish(topic("t"), {"n": 1})
        await until(lambda: taken == [{"n": 1}])


async def test_a_second_member_takes_over_what_the_first_leaves(servers, kafka, topic):
    taken: dict[int, list[bytes]] = {1: [], 2: []}

    def member(number):
        async def take(batch):
            taken[number].extend(one.value for one in batch)

        return KafkaConsumer(
            {**client_config(Kafka(**kafka["kafka"])), "group.id": kafka["kafka"]["group"]}, {topic("t"): take}
        )

    await ask(servers, topic("t"), [b'{"n": 0}'])
    first, second = member(1), member(2)
    running = [asyncio.create_task(first.run())]
    await until(lambda: bool(taken[1]))
    running.append(asyncio.create_task(second.run()))
    await first.stop()
    await ask(servers, topic("t"), [b'{"n": 1}'])
    await until(lambda: b'{"n": 1}' in taken[2])
    await second.stop()
    await asyncio.gather(*running)
    assert taken[1] == [b'{"n": 0}']


def start_child(*arguments):
    return subprocess.Popen(
        [sys.executable, str(CHILD), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["before_offsets", "before_cursor"])
async def test_a_kill_between_two_steps_loses_nothing_and_repeats_are_recognised(servers, tmp_path, topic, fate):
    address, group = f"sqlite:///{tmp_path}/ulak.db", f"ulak-{os.urandom(4).hex()}"
    arguments = (address, ",".join(servers), group, topic("t"))
    bodies = [json.dumps({"n": number}).encode() for number in range(200)]
    doomed = start_child(*arguments, fate)
    assert doomed.stdout.readline().strip() == "ready"
    await ask(servers, topic("t"), [*bodies, b"not json"])
    assert await asyncio.to_thread(doomed.wait, 60) == -signal.SIGKILL
    second = start_child(*arguments, "live")
    try:
        found = await read(servers, f"{topic('t')}.out", 200)
        while len({one.value for one in found}) < 200:
            found = await read(servers, f"{topic('t')}.out", len(found) + 1)
    finally:
        second.stdin.close()
        assert await asyncio.to_thread(second.wait, 60) == 0
        for child in (doomed, second):
            child.stdout.close()
            child.stdin.close()
    async with build(address, {"kind": "local"}) as ulak:
        counts = await ulak.jobs.counts()
    assert (counts["asked.for"]["ready"], counts["kept.bytes"]["ready"]) == (200, 1)


async def test_a_topic_that_is_stuck_holds_up_no_other(servers, kafka, topic):
    free, taken = asyncio.Event(), []
    ulak = build("memory:", kafka)

    async def stuck(batch):
        await free.wait()
        taken.append("stuck")

    async def quick(batch):
        taken.append("quick")

    ulak.bus.listen(topic("stuck"), stuck)
    ulak.bus.listen(topic("quick"), quick)
    async with ulak:
        await ask(servers, topic("stuck"), [b"1"])
        await until(lambda: any(one.paused for one in ulak.bus._bus._consumers))
        await ask(servers, topic("quick"), [b"2"])
        await until(lambda: taken == ["quick"])
        free.set()
        await until(lambda: taken == ["quick", "stuck"])
