"""Messages that their topic will never take: seen by topic, dropped by a person, with a line in the audit log."""

from __future__ import annotations

import json

import pytest

from tests.api.serving import serving
from tests.buses.conftest import build, until
from ulak import NotFound
from ulak.errors import Invalid


class Picky:
    """Takes everything but the number it dislikes."""

    def __init__(self, disliked) -> None:
        self.disliked = disliked
        self.taken: list[int] = []

    async def take(self, batch) -> None:
        numbers = [json.loads(one.value)["n"] for one in batch]
        if self.disliked in numbers or self.disliked == "all":
            raise ValueError("too large")
        self.taken += numbers


@pytest.fixture
def ulak(address):
    return build(address, {"kind": "local"})


async def published(ulak, topic, *numbers) -> None:
    for number in numbers:
        await ulak.bus.publish(topic, {"n": number}, key="k")


async def _wait_for(ulak, topic, number) -> None:
    await until(lambda: any(f"{topic} does" in one and f"{number} wait" in one for one in ulak.bus.reasons()))


async def test_a_message_that_is_dropped_lets_those_behind_it_go(ulak):
    picky = Picky(disliked=0)
    ulak.bus.listen("t", picky.take)
    async with ulak:
        await published(ulak, "t", 0, 1, 2)
        await _wait_for(ulak, "t", 3)
        assert await ulak.bus.waiting() == [("t", 3, "ValueError: too large")]
        first, second, third = await ulak.bus.waiting_of("t")
        assert await ulak.bus.waiting_of("t", after=first.id, limit=1) == [second]
        assert await ulak.bus.drop("t", first.id, who="ada") == 1
        await until(lambda: not any(point.name == "ulak_bus_messages_waiting" for point in ulak.bus.gauges()))
        assert picky.taken == [1, 2]
        assert list(ulak.bus.reasons()) == []
        assert await ulak.bus.waiting() == []
        with pytest.raises(NotFound):
            await ulak.bus.drop("t", third.id)
        with pytest.raises(Invalid):
            await ulak.bus.drop("t", "first")
        await published(ulak, "t", 3)
        await until(lambda: picky.taken == [1, 2, 3])
        lines = await ulak.audit.list(verb="bus")
    assert [(one.who, one.verb, one.object) for one in lines] == [("ada", "bus.messages.dropped", "t")]


async def test_all_that_wait_for_a_topic_can_be_dropped_and_the_relay_goes_on_at_its_bound(ulak, monkeypatch):
    monkeypatch.setattr("ulak.buses.resender.MAX_WAITING", 3)
    monkeypatch.setattr("ulak.buses.waiting.MAX_DISMISSED", 2)
    bad, good = Picky("all"), Picky(None)
    ulak.bus.listen("bad", bad.take)
    ulak.bus.listen("good", good.take)
    async with ulak:
        await published(ulak, "bad", 0, 1, 2)
        await _wait_for(ulak, "bad", 3)
        await published(ulak, "good", 3)
        await until(lambda: any("bound" in one for one in ulak.bus.reasons()))
        assert await ulak.bus.drop("bad") == 3
        await until(lambda: good.taken == [3])
        bad.disliked = None
        await published(ulak, "bad", 4)
        await until(lambda: bad.taken == [4])


async def test_the_door_lists_what_waits_and_drops_it():
    picky = Picky(disliked=0)
    path = "/api/bus/waiting/t"
    async with serving(lambda ulak: ulak.bus.listen("t", picky.take)) as served:
        await published(served.ulak, "t", 0, 1)
        await _wait_for(served.ulak, "t", 2)
        listed = await served.ask("GET", "/api/bus/waiting")
        page = (await served.ask("GET", f"{path}?limit=1")).body
        rest = (await served.ask("GET", f"{path}?after={page['next']}")).body
        refused = [(await served.ask("POST", f"{path}/drop", one)).status for one in ({}, {"id": "0-0", "all": True})]
        first = {"id": page["items"][0]["id"]}
        dropped, again = [await served.ask("POST", f"{path}/drop", first) for _ in range(2)]
        await until(lambda: picky.taken == [1])
    assert listed.body == {"topics": [{"topic": "t", "number": 2, "cause": "ValueError: too large"}]}
    assert page["items"] == [{"id": page["next"], "key": "k", "bytes": 7}]
    assert (len(rest["items"]), rest["next"], refused) == (1, None, [400, 400])
    assert (dropped.status, dropped.body, again.status) == (200, {"dropped": 1}, 404)
