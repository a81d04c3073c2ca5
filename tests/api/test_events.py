"""The event log over HTTP: pages from a cursor, and a stream that can be resumed."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from tests.api.serving import serving, with_deaths
from ulak.spine.event import find_reset, read_on
from ulak.spine.units.prune import PRUNE, Ages


async def test_events_are_read_page_by_page_without_loss():
    async with serving(with_deaths) as served:
        await served.settled(await served.enqueue())
        whole = (await served.get("/api/events?limit=1000")).body["events"]
        assert [event["name"] for event in whole] == ["accepted", "started", "done"]
        seen, after = [], 0
        while page := (await served.get(f"/api/events?after={after}&limit=2")).body["events"]:
            seen += page
            after = page[-1]["seq"]
        assert seen == whole


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cursor_of_another_store_is_refused(shared):
    assert (await shared.get("/api/events?after=1000")).status == 409


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", f"after={1 << 63}"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_cursor_is_refused(query, shared):
    assert (await shared.get(f"/api/events?{query}")).status == 400


@contextlib.asynccontextmanager
async def stream(served, query="", headers=None):
    """Yields a function that reads the next event: (id, name, data)."""
    url = f"{served.address}/api/events/stream{query}"
    async with served.session.get(url, headers=headers or {}) as response:
        assert response.status == 200
        assert (await response.content.readuntil(b"\n\n")).startswith(b": following")

        async def following():
            async with asyncio.timeout(10):
                block = (await response.content.readuntil(b"\n\n")).decode().splitlines()
            fields = dict(line.split(": ", 1) for line in block if line)
            return int(fields["id"]), fields["event"], json.loads(fields["data"])

        yield following


async def test_a_stream_tells_what_happens_from_now_on():
    async with serving(work=False) as served:
        await served.enqueue("before")
        async with stream(served) as following:
            identifier = await served.enqueue("mail")
            seq, name, data = await following()
    assert (seq, name) == (2, "accepted")
    assert (data["seq"], data["job"], data["kind"]) == (2, identifier, "mail")


async def test_a_stream_goes_on_after_the_last_event_id():
    async with serving(work=False) as served:
        ids = [await served.enqueue() for _ in range(3)]
        async with stream(served, headers={"Last-Event-ID": "1"}) as following:
            assert [(await following())[2]["job"] for _ in range(2)] == ids[1:]
        async with stream(served, "?after=2") as following:
            assert (await following())[2]["job"] == ids[2]


async def prune_all_but_the_newest(ulak):
    century = 100 * 365 * 86_400_000
    await ulak.store.submit(PRUNE, Ages(history=century, events=-century, dead=century))


@pytest.mark.parametrize(("query", "headers"), [("?after=1000", None), ("", {"Last-Event-ID": "1000"})])
async def test_a_stream_tells_that_its_cursor_is_ahead_and_goes_on_from_the_newest(query, headers):
    async with serving(work=False) as served:
        await served.enqueue("before")
        await served.enqueue("before")
        async with stream(served, query, headers) as following:
            assert await following() == (2, "reset", {"reason": "ahead", "asked": 1000, "oldest": 1, "newest": 2})
            identifier = await served.enqueue("mail")
            seq, _, data = await following()
        assert (seq, data["job"]) == (3, identifier)


async def test_a_stream_tells_that_events_after_its_cursor_were_pruned_and_goes_on_from_the_oldest():
    async with serving(work=False) as served:
        ids = [await served.enqueue() for _ in range(5)]
        await prune_all_but_the_newest(served.ulak)
        async with stream(served, headers={"Last-Event-ID": "2"}) as following:
            assert await following() == (4, "reset", {"reason": "pruned", "asked": 2, "oldest": 5, "newest": 5})
            assert [(await following())[2]["job"]] == ids[4:]
        assert (await served.get("/api/events?after=2")).body["oldest"] == 5


async def test_a_cursor_at_the_edge_of_what_was_pruned_has_missed_nothing():
    async with serving(work=False) as served:
        ids = [await served.enqueue() for _ in range(3)]
        await prune_all_but_the_newest(served.ulak)
        async with stream(served, headers={"Last-Event-ID": "2"}) as following:
            assert (await following())[2]["job"] == ids[2]
        async with stream(served, headers={"Last-Event-ID": "3"}) as following:
            identifier = await served.enqueue()
            assert (await following())[2]["job"] == identifier


async def test_pruning_that_overtakes_a_slow_reader_is_noticed():
    async with serving(work=False) as served:
        for _ in range(3):
            await served.enqueue()
        assert (await served.ulak.store.read(read_on, 0, 10))[0] is None
        await prune_all_but_the_newest(served.ulak)
        reset, events, _ = await served.ulak.store.read(read_on, 0, 10)
        assert (reset.reason, reset.resume, [event.seq for event in events]) == ("pruned", 2, [3])


async def test_an_empty_log_has_nothing_to_miss():
    async with serving(work=False) as served:
        assert await served.ulak.store.read(find_reset, 0) is None
        assert (await served.ulak.store.read(find_reset, 1)).resume == 0


async def test_a_stream_ends_when_the_ulak_stops():
    async with serving(work=False) as served, served.session.get(f"{served.address}/api/events/stream") as response:
        await response.content.readuntil(b"\n\n")
        await served.ulak.close()
        async with asyncio.timeout(10):
            assert await response.content.read() in {b"", b": still here\n\n"}


async def test_a_stream_writes_an_event_as_a_page_does():
    async with serving(work=False) as served:
        identifier = await served.enqueue("mail", {}, key="ayse@example.com")
        stream = await served.session.get(f"{served.address}/api/events/stream?after=0")
        async with asyncio.timeout(30):
            while not (line := await stream.content.readline()).startswith(b"data: "):
                pass
        stream.close()
        (first,) = (await served.get("/api/events?limit=1")).body["events"]
    assert (json.loads(line.removeprefix(b"data: ")), first["job"]) == (first, identifier)
    assert "ayse@example.com" not in str(first)
