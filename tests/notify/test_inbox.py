"""The inbox of IN_APP: a list per recipient, what is unread, and a stream that misses nothing."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from tests.notify.conftest import build
from ulak.clock import to_datetime, to_millis
from ulak.notify import inbox
from ulak.notify.model import Notification
from ulak.notify.stream import InboxStream
from ulak.spine.units.prune import PRUNE, Ages
from ulak.testing import drain


def stream_of(ulak):
    return InboxStream(lambda: ulak.loops.tail)


async def following(ulak, after):
    stream = stream_of(ulak)
    return stream.follow("ada", await stream.begin(after))


async def send(ulak, *bodies, to="ada"):
    for body in bodies:
        await ulak.notify.send("IN_APP", to, body, subject="S", metadata={"n": 1})
    await drain(ulak)


async def test_an_in_app_notification_is_in_the_inbox_when_it_is_delivered(make):
    async with make() as ulak:
        await send(ulak, "one", "two")
        await send(ulak, "other", to="bob")
        items = await ulak.notify.inbox("ada")
        assert [item.body for item in items] == ["two", "one"]
        assert (items[0].subject, items[0].metadata, items[0].read_at) == ("S", {"n": 1}, None)
        assert items[0].created_at <= items[0].delivered_at <= to_datetime(ulak.clock.now())
        assert await ulak.notify.unread("ada") == 2
        older = await ulak.notify.inbox("ada", before=items[0].id)
        assert [item.body for item in older] == ["one"]


async def test_items_are_marked_read_one_by_one_or_all_at_once(make):
    async with make() as ulak:
        first = await ulak.notify.send("IN_APP", "ada", "one")
        await send(ulak, "two", "three")
        assert await ulak.notify.mark_read("bob", first) == 0
        assert await ulak.notify.mark_read("ada", first) == 1
        assert await ulak.notify.mark_read("ada", first) == 0
        assert [item.body for item in await ulak.notify.inbox("ada", unread_only=True)] == ["three", "two"]
        assert await ulak.notify.mark_read("ada") == 2
        assert await ulak.notify.unread("ada") == 0


async def test_a_delivery_that_is_repeated_stays_one_item(make):
    async with make() as ulak:
        await send(ulak, "one")
        (item,) = await ulak.notify.inbox("ada")
        view = (await ulak.notify.list())[0]
        kept = await ulak.jobs.get(view.job)
        again = Notification("IN_APP", "ada", "one", metadata=kept.payload["metadata"])
        await ulak.store.write(inbox.add, identifier=item.id, created_at=to_millis(item.created_at), notification=again)
        assert len(await ulak.notify.inbox("ada")) == 1


async def test_old_items_are_pruned(make):
    async with make() as ulak:
        await send(ulak, "old")
        ulak.clock.advance(91 * 86_400)
        await send(ulak, "new")
        await ulak.store.write(inbox.prune, 90 * 86_400_000)
        assert [item.body for item in await ulak.notify.inbox("ada")] == ["new"]


async def test_a_stream_tells_what_is_new_and_only_to_its_recipient(address):
    async with build(address, None) as ulak, aclosing(await following(ulak, None)) as news:
        assert (await anext(news))[1] is None
        await ulak.notify.send("IN_APP", "bob", "not for ada")
        await ulak.notify.send("IN_APP", "ada", "for ada")
        _, item = await anext(news)
        assert item.body == "for ada"


async def test_a_stream_is_resumed_where_it_broke_off_without_loss(address):
    async with build(address, None) as ulak, asyncio.timeout(60):
        seen, cursor = [], None
        sending = asyncio.create_task(send_slowly(ulak, 40))
        while len(seen) < 40:
            async with aclosing(await following(ulak, cursor)) as news:
                taken = 0
                async for cursor, item in news:  # noqa: B007 - where to resume
                    seen += [] if item is None else [item.body]
                    taken += item is not None
                    if taken == 7 or len(seen) == 40:
                        break  # the line breaks here, in the middle of things
        await sending
    assert sorted(seen, key=int) == [str(number) for number in range(40)]


async def send_slowly(ulak, number):
    for body in range(number):
        await ulak.notify.send("IN_APP", "ada", str(body))


async def test_a_cursor_ahead_of_the_log_is_told_and_what_is_new_follows(address):
    async with build(address, None) as ulak, aclosing(await following(ulak, 1 << 40)) as news:
        cursor, reset = await anext(news)
        assert (reset.reason, reset.asked, reset.newest) == ("ahead", 1 << 40, cursor)
        await ulak.notify.send("IN_APP", "ada", "one")
        assert (await anext(news))[1].body == "one"


async def test_a_cursor_behind_the_oldest_event_is_told_and_what_is_left_follows(make):
    century = 100 * 365 * 86_400_000
    async with make() as ulak:
        await send(ulak, "one")
        await send(ulak, "two")
        await ulak.store.submit(PRUNE, Ages(history=century, events=-century, dead=century))
        async with aclosing(await following(ulak, 0)) as news:
            cursor, reset = await anext(news)
            assert (reset.reason, reset.oldest) == ("pruned", cursor + 1)
            await send(ulak, "three")
            bodies = []
            while bodies[-1:] != ["three"]:
                coming = asyncio.ensure_future(anext(news))
                while not coming.done():  # on PostgreSQL an event is numbered a moment after its commit
                    ulak.clock.advance(0.1)
                    await asyncio.sleep(0.001)
                bodies += [] if coming.result()[1] is None else [coming.result()[1].body]
        # How many commits share a block, and so what is left, is the store's affair; nothing after it may be missing.
        assert bodies == ["one", "two", "three"][-len(bodies) :]


async def test_a_quiet_stream_tells_its_place_now_and_then_though_others_get_something(make_in_memory):
    async with make_in_memory() as ulak, aclosing(await following(ulak, None)) as news:
        start, _ = await anext(news)
        coming = asyncio.ensure_future(anext(news))
        await send(ulak, "not for ada", to="bob")
        while not coming.done():
            ulak.clock.advance(1)
            await asyncio.sleep(0.001)
        place, item = coming.result()
        assert (item, place > start) == (None, True)
