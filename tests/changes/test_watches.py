"""Watches, rules and announcements: what a change sets going."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from ulak.changes import watches
from ulak.changes.model import EVENTS
from ulak.channels.signature import Secret, verify
from ulak.errors import Conflict, Invalid, NotFound
from ulak.testing import drain, enqueued


class Sink:
    """A receiver on loopback that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[dict, bytes]] = []
        self.status = 200

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        return web.Response(status=self.status)

    def bodies(self) -> list[dict]:
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
async def sink():
    made = Sink()
    application = web.Application()
    application.router.add_post("/hook", made.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/hook"
    yield made
    await runner.cleanup()


LOCAL = {"channels__webhook__allow": ("127.0.0.0/8",)}


async def test_a_watch_tells_a_webhook_of_its_records_alone_and_signs(make, sink):
    async with make(**LOCAL) as desk:
        await desk.publish(range(1, 21))
        watch = await desk.room.watch("einvoice", ["0000000003", "0000000099"], webhook=sink.url)
        await desk.publish([*range(2, 3), *range(4, 21)])
        ((headers, body),) = sink.got
        verify([Secret(watch.secret)], headers, body, desk.clock_datetime())
        told = json.loads(body)
        assert [(one["identifier"], one["changeType"]) for one in told["changes"]] == [("0000000003", "removed")]
        assert told["cursor"] == told["changes"][0]["cursor"]
        await desk.publish(range(4, 21))
        assert len(sink.got) == 1


async def test_a_watch_may_ask_for_some_fields_only(make, sink):
    async with make(**LOCAL) as desk:
        await desk.publish(range(1, 21))
        await desk.room.watch("einvoice", ["0000000003"], ["aliases"], webhook=sink.url)
        await desk.publish(range(1, 21), title="YENİ")
        assert sink.got == []


async def test_a_watch_may_be_a_job(make):
    async with make() as desk:
        await desk.publish(range(1, 21))
        await desk.room.watch("einvoice", ["0000000003"], kind="mine.changed")
        await desk.publish(range(1, 21), title="YENİ")
        (job,) = await enqueued(desk.ulak, "mine.changed")
        assert job.payload["changes"][0]["changedFields"] == ["title"]


async def test_a_watch_that_is_gone_tells_nobody(make, sink):
    async with make(**LOCAL) as desk:
        await desk.publish(range(1, 21))
        watch = await desk.room.watch("einvoice", [], webhook=sink.url)
        (listed,) = await desk.room.list_watches("einvoice")
        assert listed == watch
        await desk.room.unwatch("einvoice", desk.ulak.store.ids.to_text(watch.id))
        await desk.publish(range(1, 22))
        assert sink.got == []
        with pytest.raises(NotFound):
            await desk.room.unwatch("einvoice", desk.ulak.store.ids.to_text(watch.id))


async def test_a_private_address_is_not_called(make, sink):
    async with make() as desk:
        await desk.publish(range(1, 21))
        await desk.room.watch("einvoice", [], webhook=sink.url)
        await desk.publish(range(1, 22))
        assert sink.got == []
        (dead,) = await desk.ulak.jobs.list(kind="changes.announce")
        assert dead.status == "dead"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"webhook": "http://x.example", "kind": "a.b"},
        {"webhook": "ftp://x"},
        {"webhook": "http://"},
        {"webhook": "https://user:secret@x.example/"},
        {"kind": "a\x00b"},
        {"kind": "a.b", "keys": ["1\x00"]},
    ],
)
async def test_a_watch_that_can_tell_nobody_is_refused(make, given):
    async with make() as desk:
        with pytest.raises(Invalid):
            await desk.room.watch("einvoice", **given)


async def test_a_watch_of_an_unknown_field_is_refused(make):
    async with make() as desk:
        with pytest.raises(Invalid, match="colour is not a field"):
            await desk.room.watch("einvoice", [], ["colour"], kind="a.b")


RULES = ({"feed": "einvoice", "change": "added", "kind": "mine.added"}, {"feed": "edespatch", "kind": "mine.despatch"})


async def test_a_rule_makes_a_job_of_each_change(make):
    async with make(changes__rule=RULES) as desk:
        await desk.publish(range(1, 21))
        assert await enqueued(desk.ulak, "mine.added") == []
        await desk.publish(range(2, 24))
        added = await enqueued(desk.ulak, "mine.added")
        assert {job.payload["change"]["identifier"] for job in added} == {f"{n:010d}" for n in (21, 22, 23)}
        assert len(await enqueued(desk.ulak, "mine.despatch")) == 1


async def test_jobs_of_rules_are_bounded_and_none_is_lost(make):
    async with asyncio.timeout(50), make(changes__rule=RULES[:1], spine__capacity=25) as desk:
        seen = []
        await desk.publish(range(1, 21))
        await desk.publish(range(1, 81))
        assert 0 < len(await enqueued(desk.ulak, "mine.added")) <= 25
        while len(seen) < 60:
            waiting = await enqueued(desk.ulak, "mine.added")
            seen += [job.payload["change"]["identifier"] for job in waiting]
            for job in waiting:
                await desk.ulak.jobs.cancel(job.id)
            desk.clock.advance(10)
            await drain(desk.ulak)
        assert len(set(seen)) == len(seen) == 60


async def test_an_announcement_goes_out_as_json_and_to_slack(make, sink):
    announce = (
        {"url": sink.url, "events": ("changes.sync.partial",)},
        {"url": sink.url, "format": "slack", "events": ("changes.guard.tripped",)},
    )
    async with make(**LOCAL, changes__announce=announce) as desk:
        await desk.publish(range(1, 21))
        assert sink.got == []
        report = await desk.publish(range(11, 21))
        plain, slack = sorted(sink.bodies(), key=lambda body: "text" in body)
        assert (plain["event"], plain["syncId"]) == ("changes.sync.partial", report.sync_id)
        assert plain["feeds"]["einvoice"]["withheld"] == 10
        assert set(slack) == {"text"}
        assert "changes.guard.tripped: gib withheld" in slack["text"]


async def test_without_a_filter_every_event_is_announced(make, sink):
    async with make(**LOCAL, changes__announce=({"url": sink.url},)) as desk:
        await desk.publish(range(1, 21))
        await desk.publish(range(11, 21))
        assert {body["event"] for body in sink.bodies()} <= set(EVENTS)
        assert len(sink.got) == 3


async def test_a_feed_has_a_bounded_number_of_watches(make, monkeypatch):
    monkeypatch.setattr(watches, "MAX_WATCHES", 2)
    async with make() as desk:
        for _ in range(2):
            await desk.room.watch("einvoice", [], kind="a.b")
        with pytest.raises(Conflict, match="takes no more"):
            await desk.room.watch("einvoice", [], kind="a.b")
        await desk.room.watch("edespatch", [], kind="a.b")
