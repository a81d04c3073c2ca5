"""The inbox over HTTP, and its stream of server-sent events: resumed after a broken line, nothing is missed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import pytest
from yarl import URL

from tests.api.serving import serving


async def send(served, *bodies, to="ada"):
    for body in bodies:
        request = {"notificationType": "IN_APP", "recipient": to, "subject": "S", "body": body}
        assert (await served.post("/api/notifications", request)).status == 202


async def inbox_of(served, count, to="ada"):
    async with asyncio.timeout(10):
        with served.ulak.loops.watching() as news:
            while True:
                news.clear()
                found = (await served.get(f"/api/inbox/{to}")).body
                if len(found["items"]) == count:
                    return found
                await news.wait()


class Stream:
    """A follower, as a browser's EventSource is one: remembers the last id that it was told."""

    def __init__(self, served, recipient="ada"):
        self._url = f"{served.address}/api/inbox/{recipient}/stream"
        self.last = None
        self.items = []

    async def follow(self, until):
        """Read until `until(items)`; then the line is cut without a word."""
        headers = {} if self.last is None else {"Last-Event-ID": self.last}
        url = URL(self._url, encoded=True)
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            self.last = self.last or answer.headers["X-Ulak-Cursor"]
            async for line in answer.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    self.last = value
                    assert value
                elif name == "data":
                    self.items.append(json.loads(value))
                if until(self):
                    return
        raise AssertionError("the stream ended")


async def test_an_inbox_is_listed_counted_and_marked_read():
    async with serving() as served:
        await send(served, "one", "two", "three")
        await send(served, "other", to="bob")
        page = await inbox_of(served, 3)
        assert page["unread"] == 3
        assert {item["body"] for item in page["items"]} == {"one", "two", "three"}
        newest = page["items"][0]
        assert (await served.post(f"/api/inbox/ada/{newest['id']}/read")).body == {"marked": 1}
        assert (await served.post(f"/api/inbox/bob/{newest['id']}/read")).body == {"marked": 0}
        unread = (await served.get("/api/inbox/ada?unread=true&limit=1")).body
        assert (unread["unread"], len(unread["items"]), unread["items"][0]["readAt"]) == (2, 1, None)
        rest = (await served.get(f"/api/inbox/ada?unread=true&before={unread['nextBefore']}")).body
        assert len(rest["items"]) == 1
        assert (await served.post("/api/inbox/ada/read")).body == {"marked": 2}
        assert (await served.get("/api/inbox/ada")).body["unread"] == 0
        foreign = await served.get(f"/api/inbox/ada?before={uuid4()}")
        assert [one["field"] for one in foreign.body["fields"]] == ["before"]


async def test_a_recipient_with_unusual_letters_has_an_inbox():
    async with serving() as served:
        await send(served, "one", to="ayşe yılmaz+1@örnek.org")
        page = await inbox_of(served, 1, to="ay%C5%9Fe%20y%C4%B1lmaz%2B1@%C3%B6rnek.org")
        assert page["items"][0]["body"] == "one"


@pytest.mark.parametrize(
    "recipient", ["org/7/ada", "/", "a/b/", "ada/read", "ada/stream", "a%2Fb", "a%b", "a+b?c#d", "a/ş/\u2028"]
)
async def test_a_recipient_with_slashes_and_signs_has_an_inbox(recipient):
    place = f"/api/inbox/{quote(recipient, safe='')}"
    async with serving() as served, asyncio.timeout(20):
        await send(served, "not this one", to="ada")
        await send(served, "one", "two", to=recipient)
        page = await inbox_of(served, 2, to=quote(recipient, safe=""))
        assert page["unread"] == 2
        item = page["items"][0]["id"]
        assert (await served.post(f"{place}/{item}/read")).body == {"marked": 1}
        assert (await served.post(f"{place}/read")).body == {"marked": 1}
        stream = Stream(served, quote(recipient, safe=""))
        stream.last = "0"
        await stream.follow(lambda one: len(one.items) == 2)
        assert {found["body"] for found in stream.items} == {"one", "two"}


@pytest.mark.parametrize("recipient", ["a%00b", "%0A", "a%2F%1fb", "%7F", "x" * 2049])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_recipient_that_can_not_be_one_is_refused(shared, recipient):
    for method, rest in (("GET", ""), ("GET", "/stream"), ("POST", "/read"), ("POST", f"/{uuid4()}/read")):
        answer = await shared.ask(method, f"/api/inbox/{recipient}{rest}")
        assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["recipient"]), rest


@pytest.mark.asyncio(loop_scope="module")
async def test_a_plain_slash_ends_the_recipient(shared):
    assert (await shared.get("/api/inbox/org/ada")).status == 404


async def test_the_stream_tells_what_is_new():
    async with serving() as served, asyncio.timeout(20):
        stream = Stream(served)
        following = asyncio.create_task(stream.follow(lambda one: len(one.items) == 2))
        while stream.last is None:
            await asyncio.sleep(0)
        await send(served, "one", "two")
        await send(served, "not for ada", to="bob")
        await following
    assert sorted(item["body"] for item in stream.items) == ["one", "two"]


async def test_a_stream_that_breaks_off_again_and_again_misses_nothing_and_repeats_nothing():
    async with serving() as served, asyncio.timeout(30):
        stream, number = Stream(served), 30
        await stream.follow(lambda one: one.last is not None)
        sending = asyncio.create_task(send(served, *map(str, range(number))))
        while len(stream.items) < number:
            enough = min(len(stream.items) + 4, number)
            await stream.follow(lambda one, enough=enough: len(one.items) >= enough)
        await sending
    assert sorted(int(item["body"]) for item in stream.items) == list(range(number))


async def test_what_came_while_nobody_listened_is_told_at_the_resume():
    async with serving() as served, asyncio.timeout(20):
        stream = Stream(served)
        await stream.follow(lambda one: one.last is not None)
        await send(served, "one", "two")
        await inbox_of(served, 2)
        await stream.follow(lambda one: len(one.items) == 2)
    assert len({item["id"] for item in stream.items}) == 2


async def test_a_stream_that_comes_back_after_a_restore_is_told_so():
    async with serving() as served, asyncio.timeout(20):
        stream = Stream(served)
        stream.last = "1000"
        await stream.follow(lambda one: len(one.items) == 1)
        assert stream.items[0]["reason"] == "ahead"
        await send(served, "one")
        await stream.follow(lambda one: len(one.items) == 2)
    assert stream.items[1]["body"] == "one"


@pytest.mark.parametrize("mark", ["x", "-1", "1.5", "²", "9" * 20])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_mark_that_is_none_is_refused(shared, mark):
    with contextlib.suppress(UnicodeEncodeError):
        answer = await shared.get("/api/inbox/ada/stream", headers={"Last-Event-ID": mark})
        assert answer.status == 400


async def test_streams_end_when_the_server_stops():
    async with serving() as served:
        stream = Stream(served)
        following = asyncio.create_task(stream.follow(lambda _: False))
        async with asyncio.timeout(10):
            while stream.last is None:
                await asyncio.sleep(0)
    with pytest.raises((aiohttp.ClientError, AssertionError)):
        await following
