"""One suite for both buses on every store: what is published arrives, in order, and survives crashes."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.buses.conftest import build, until
from tests.postgres_server import fresh_database
from ulak.buses.relay import BusRelay
from ulak.buses.resender import Resender
from ulak.buses.route import publish
from ulak.errors import Conflict, Invalid, Refused, Unavailable
from ulak.spine.room import Room


class Listener:
    """Takes batches, as told: `failures` are raised first."""

    def __init__(self) -> None:
        self.records = []
        self.failures: list[Exception] = []

    async def take(self, batch) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.records += batch

    @property
    def values(self):
        return [json.loads(one.value) for one in self.records]


@pytest.fixture
def listener():
    return Listener()


async def test_what_is_published_arrives_in_order_of_its_key(address, bus, topic, listener):
    ulak = build(address, bus)
    ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        for number in range(20):
            await ulak.bus.publish(topic("t"), {"n": number}, key="one")
        await until(lambda: len(listener.records) >= 20)
    assert [value["n"] for value in listener.values] == list(range(20))
    assert {one.key for one in listener.records} == {b"one"}


async def test_a_message_of_a_unit_goes_out_only_if_that_commits(address, bus, topic, listener):
    ulak = build(address, bus)
    ulak.bus.listen(topic("t"), listener.take)

    def fails(tx):
        publish(tx, topic("t"), {"n": 1})
        raise Conflict("no")

    async with ulak:
        with pytest.raises(Conflict):
            await ulak.write(fails)
        await ulak.write(publish, topic("t"), {"n": 2})
        await until(lambda: len(listener.records) >= 1)
    assert listener.values == [{"n": 2}]


async def test_bytes_and_text_go_as_they_are(address, bus, topic, listener):
    ulak = build(address, bus)
    ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        await ulak.bus.publish(topic("t"), b"\x00\xff", key="k")
        await ulak.bus.publish(topic("t"), "plain", key="k")
        await until(lambda: len(listener.records) >= 2)
    assert [one.value for one in listener.records] == [b"\x00\xff", b"plain"]


async def test_what_was_not_sent_yet_is_sent_by_the_next_process(address, bus, topic, listener):
    first = build(address, bus)
    first.bus.listen(topic("t"), Listener().take)
    async with first:  # it makes the cursor
        pass
    async with build(address, {"kind": "local"}) as other:  # nobody listens, so nothing is sent
        await other.bus.publish(topic("t"), {"n": 1})
    second = build(address, bus)
    second.bus.listen(topic("t"), listener.take)
    async with second:
        await until(lambda: len(listener.records) >= 1)
    assert listener.values == [{"n": 1}]


async def test_routed_events_reach_their_topic_with_their_key(address, bus, topic, listener):
    route = {"event": "acc*", "topic": topic("jobs"), "key": "kind"}
    ulak = build(address, {**bus, "route": [route]})
    ulak.bus.listen(topic("jobs"), listener.take)
    async with ulak:
        job = await ulak.enqueue("unknown.kind", {"secret": "x"})
        await until(lambda: len(listener.records) >= 1)
    [record], [value] = listener.records, listener.values
    assert (record.key, value["name"], value["job"], value["kind"]) == (
        b"unknown.kind", "accepted", str(job), "unknown.kind",
    )  # fmt: skip


async def test_cloud_events_are_what_the_standard_asks_for(address, bus, topic, listener):
    route = {"event": "accepted", "topic": topic("jobs"), "cloudevents": True}
    ulak = build(address, {**bus, "route": [route]})
    ulak.bus.listen(topic("jobs"), listener.take)
    async with ulak:
        job = await ulak.enqueue("unknown.kind")
        await until(lambda: len(listener.records) >= 1)
    [value] = listener.values
    assert {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"} == set(value)
    assert (value["specversion"], value["type"], value["subject"]) == ("1.0", "ulak.accepted", str(job))
    assert listener.records[0].key == str(job).encode()


async def test_a_batch_that_a_function_fails_to_take_is_given_again(address, bus, topic, listener):
    listener.failures = [Unavailable("the store is away"), ZeroDivisionError()]
    ulak = build(address, bus)
    ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        await ulak.bus.publish(topic("t"), {"n": 1})
        await until(lambda: len(listener.records) >= 1)
    assert listener.values == [{"n": 1}]


async def test_a_topic_whose_messages_nobody_takes_holds_up_no_other(address, bus, topic, listener):
    other = Listener()
    listener.failures = [ZeroDivisionError()] * 1000
    ulak = build(address, bus)
    ulak.bus.listen(topic("bad"), listener.take)
    ulak.bus.listen(topic("good"), other.take)
    async with ulak:
        for number in range(3):
            await ulak.bus.publish(topic("bad"), {"n": number}, key="k")
            await ulak.bus.publish(topic("good"), {"n": number}, key="k")
        await until(lambda: len(other.records) >= 3)
        assert listener.records == []
        listener.failures = []
        await until(lambda: len(listener.records) >= 3)
    assert [value["n"] for value in other.values] == [0, 1, 2]
    assert [value["n"] for value in listener.values] == [0, 1, 2]


async def test_what_a_topic_did_not_take_is_sent_by_the_next_process(address, topic, listener):
    async def fail(batch):
        raise ZeroDivisionError

    first = build(address, {"kind": "local"})
    first.bus.listen(topic("t"), fail)
    async with first:
        await first.bus.publish(topic("t"), {"n": 1})
        await until(lambda: any(topic("t") in reason for reason in first.bus.reasons()))
        await first.bus.publish(topic("t"), {"n": 2})
    second = build(address, {"kind": "local"})
    second.bus.listen(topic("t"), listener.take)
    async with second:
        await second.bus.publish(topic("t"), {"n": 3})
        await until(lambda: len(listener.records) >= 3)
    assert [value["n"] for value in listener.values] == [1, 2, 3]


async def test_a_resender_that_fails_is_followed_by_another(address, topic, listener, monkeypatch):
    refusals = [Refused("the store is too far behind to take more")]
    write = Resender._write

    async def refuse_first(self, *args):
        if refusals:
            raise refusals.pop()
        return await write(self, *args)

    monkeypatch.setattr(Resender, "_write", refuse_first)
    listener.failures = [ZeroDivisionError()]
    ulak = build(address, {"kind": "local"})
    ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        await ulak.bus.publish(topic("t"), {"n": 1})
        await until(lambda: len(listener.records) >= 1)
    assert (listener.values, refusals) == ([{"n": 1}], [])


async def test_a_relay_outlives_an_error_that_nobody_thought_of(address, topic, listener, monkeypatch):
    monkeypatch.setattr("ulak.buses.relay.ELECTION_SECONDS", 0.01)
    pass_on, failures = BusRelay._pass_on, [KeyError("odd")]

    async def fail_once(relay, page):
        if failures:
            raise failures.pop()
        return await pass_on(relay, page)

    monkeypatch.setattr(BusRelay, "_pass_on", fail_once)
    ulak = build(address, {"kind": "local"})
    ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        await ulak.bus.publish(topic("t"), {"n": 1})
        await until(lambda: listener.values == [{"n": 1}])


async def test_at_the_bound_of_what_waits_the_relay_stands_still_and_says_so(address, topic, listener, monkeypatch):
    monkeypatch.setattr("ulak.buses.resender.MAX_WAITING", 2)
    healthy = Listener()
    listener.failures = [ZeroDivisionError()] * 1000
    ulak = build(address, {"kind": "local"})
    ulak.bus.listen(topic("bad"), listener.take)
    ulak.bus.listen(topic("good"), healthy.take)
    async with ulak:
        for number in range(2):
            await ulak.bus.publish(topic("bad"), {"n": number})
        await until(lambda: any("2 wait" in reason for reason in ulak.bus.reasons()))
        await ulak.bus.publish(topic("good"), {"n": 2})
        await until(lambda: any("bound" in reason for reason in ulak.bus.reasons()))
        assert healthy.records == []
        listener.failures = []
        await until(lambda: len(healthy.records) == 1 and len(listener.records) == 2)


async def test_a_message_that_is_too_large_is_refused_where_it_is_published(address, topic):
    async with build(address, {"kind": "local"}) as ulak:
        with pytest.raises(Invalid, match="262144"):
            await ulak.bus.publish(topic("t"), "x" * 300_000)


async def test_a_name_that_no_topic_can_have_is_refused_where_it_is_published():
    async with build("memory:", {"kind": "local"}) as ulak:
        with pytest.raises(Invalid, match="topic"):
            await ulak.bus.publish("what is this", {"n": 1})


async def test_one_function_takes_a_topic_and_says_so_before_the_start(address, bus, topic, listener):
    ulak = build(address, bus)
    ulak.bus.listen(topic("t"), listener.take)
    with pytest.raises(Conflict, match="already"):
        ulak.bus.listen(topic("t"), listener.take)
    async with ulak:
        with pytest.raises(Conflict, match="before"):
            ulak.bus.listen(topic("other"), listener.take)


async def test_a_take_that_never_ends_does_not_keep_a_stop_from_its_end(address, bus, topic):
    ulak, begun = build(address, bus), asyncio.Event()

    async def take(batch):
        begun.set()
        await asyncio.Event().wait()

    ulak.bus.listen(topic("t"), take)
    async with asyncio.timeout(25), ulak:
        await ulak.bus.publish(topic("t"), {"n": 1})
        await begun.wait()


class Requests:
    """A room's way in: remembers what it accepted, is full at first if told so, and knows a repeat."""

    def __init__(self, full=0) -> None:
        self.full = full
        self.accepted = []
        self.kept = []

    async def accept(self, bodies, origin=None):
        if self.full:
            self.full -= 1
            return [Refused("full") for _ in bodies]
        self.accepted += bodies
        return list(bodies)

    async def keep(self, body, topic, partition, offset):
        self.kept.append(body)


async def test_requests_are_accepted_and_what_can_not_be_read_is_kept(address, bus, topic):
    ulak, room = build(address, bus), Requests(full=2)
    ulak.bus.accept_from(topic("asked"), room.accept, room.keep)
    async with ulak:
        await ulak.bus.publish(topic("asked"), {"n": 1}, key="k")
        await ulak.bus.publish(topic("asked"), b"\xff", key="k")
        await ulak.bus.publish(topic("asked"), {"n": 2}, key="k")
        await until(lambda: len(room.accepted) == 2 and len(room.kept) == 1)
    assert [json.loads(body)["n"] for body in room.accepted] == [1, 2]
    assert room.kept == [b"\xff"]


async def test_a_room_that_names_a_topic_gets_its_requests(address, bus, topic, monkeypatch):
    room = Requests()
    ulak = build(address, bus)
    ulak._furnish(Room("asked", None, ports={"requests": lambda: (topic("asked"), room.accept, room.keep)}))
    async with ulak:
        await ulak.bus.publish(topic("asked"), {"n": 1})
        await until(lambda: len(room.accepted) == 1)


@pytest.mark.postgres
async def test_of_many_processes_on_one_store_one_relays_and_another_takes_over(topic, tmp_path):
    bus = {"kind": "local"}
    with fresh_database() as address:
        heard = [Listener(), Listener()]
        ulaks = [build(address, bus) for _ in heard]
        for ulak, listener in zip(ulaks, heard, strict=True):
            ulak.bus.listen(topic("t"), listener.take)
        async with ulaks[1]:
            await until(lambda: ulaks[1].bus._relay.leads)
            async with ulaks[0]:
                await ulaks[0].bus.publish(topic("t"), {"n": 1})
                await until(lambda: len(heard[1].records) == 1)
                assert not ulaks[0].bus._relay.leads
                await ulaks[1].bus.stop()
                await ulaks[0].bus.publish(topic("t"), {"n": 2})
                await until(lambda: len(heard[0].records) == 1)
        assert (heard[0].values, heard[1].values) == ([{"n": 2}], [{"n": 1}])
