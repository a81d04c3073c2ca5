"""Messages of a bus that are not requests: kept, listed by their place, shown to those who may, removed with age."""

from __future__ import annotations

import pytest

from tests.api.serving import serving
from ulak import Invalid, NotFound
from ulak.actions.unreadable import prune_unreadable

TOPIC = "cinga.action.requested"
DAY = 86_400_000


async def test_unreadable_messages_are_listed_in_the_order_of_the_bus_page_by_page(make):
    async with make() as ulak:
        for partition, offset in ((1, 5), (0, 10), (0, 9)):
            await ulak.actions.keep_unreadable(b"\xff\x00" * offset, TOPIC, partition, offset)
        first = await ulak.actions.unreadable(limit=2)
        rest = await ulak.actions.unreadable(after=first[-1].id, limit=2)
        body = await ulak.actions.unreadable_body(f"{TOPIC}:0:9")
    assert [(one.partition, one.offset, one.size) for one in first + rest] == [(0, 9, 18), (0, 10, 20), (1, 5, 10)]
    assert body == b"\xff\x00" * 9


@pytest.mark.parametrize("identifier", ["", TOPIC, f"{TOPIC}:0", f"{TOPIC}:0:x", f"{TOPIC}:-1:0", f"{TOPIC}:0:²"])
async def test_an_id_that_is_not_a_place_on_the_bus_is_refused(make_in_memory, identifier):
    async with make_in_memory() as ulak:
        with pytest.raises(Invalid, match="topic:partition:offset"):
            await ulak.actions.unreadable(after=identifier)


async def test_a_message_that_was_not_kept_is_not_found(make_in_memory):
    async with make_in_memory() as ulak:
        with pytest.raises(NotFound, match=f"{TOPIC}:0:1"):
            await ulak.actions.unreadable_body(f"{TOPIC}:0:1")


async def test_unreadable_messages_are_removed_when_they_are_old(make, clock):
    async with make(work=False) as ulak:
        await ulak.actions.keep_unreadable(b"old", TOPIC, 0, 1)
        clock.advance(DAY / 1000)
        await ulak.actions.keep_unreadable(b"new", TOPIC, 0, 2)
        assert await ulak.write(prune_unreadable, keep_millis=DAY - 1) == 1
        assert [one.offset for one in await ulak.actions.unreadable()] == [2]


async def test_the_bytes_of_an_unreadable_message_are_shown_over_http_and_audited():
    async with serving() as served:
        await served.ulak.actions.keep_unreadable(b"not JSON", TOPIC, 0, 42)
        listed = await served.get("/api/actions/unreadable")
        (item,) = listed.body["items"]
        shown = await served.get(f"/api/actions/unreadable/{item['id']}")
        audit = await served.get("/api/audit")
        refused = await served.get("/api/actions/unreadable/nonsense")
    assert (item["topic"], item["partition"], item["offset"], item["size"]) == (TOPIC, 0, 42, 8)
    assert "not JSON" not in listed.text
    assert (shown.status, shown.text) == (200, "not JSON")
    assert f"unreadable message {TOPIC}:0:42" in audit.text
    assert refused.status == 400


async def test_the_bytes_of_an_unreadable_message_need_the_scope_reveal(monkeypatch):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True}) as served:
        await served.ulak.actions.keep_unreadable(b"not JSON", TOPIC, 0, 42)
        key = await served.make_key("actions")
        shown = await served.get(f"/api/actions/unreadable/{TOPIC}:0:42", key=key)
    assert shown.status == 403
