"""Idempotency-Key: one key, one notification, for as long as the key counts."""

from __future__ import annotations

import asyncio
import math

import msgspec
import pytest

from ulak import Conflict, Invalid, Refused
from ulak.notify.idempotency import prune
from ulak.notify.model import Request
from ulak.testing import drain


def request(body="Hello"):
    return Request(notification_type="SMS", recipient="+905551112233", body=body)


async def test_a_repeat_gets_the_first_answer_and_is_not_sent_again(make, channel):
    async with make() as ulak:
        first = await ulak.notify.accept(request(), "key-1")
        await drain(ulak)
        ulak.clock.advance(100)
        assert await ulak.notify.accept(request(), "key-1") == first
        await drain(ulak)
    assert len(channel.messages) == 1


async def test_repeats_at_the_same_moment_make_one_notification(make, channel):
    async with make() as ulak:
        answers = await asyncio.gather(*(ulak.notify.accept(request(), "key-1") for _ in range(20)))
        await drain(ulak)
    assert len({answer.id for answer in answers}) == 1
    assert len(channel.messages) == 1


async def test_the_same_key_with_another_body_is_refused(make, channel):
    async with make() as ulak:
        await ulak.notify.accept(request(), "key-1")
        with pytest.raises(Conflict, match="another body"):
            await ulak.notify.accept(request("Bye"), "key-1")


async def test_a_repeat_is_answered_at_a_full_bound_also_while_others_wait_there(make, channel):
    async with make(work=False, notify={"capacity": 1}) as ulak:
        first = await ulak.notify.accept(request(), "key-1")
        waiting = asyncio.create_task(ulak.notify.accept(request("Later"), wait_seconds=math.inf))
        while not ulak.loops.gate._waiting:
            await asyncio.sleep(0)
        assert await ulak.notify.accept(request(), "key-1", wait_seconds=0) == first
        with pytest.raises(Conflict, match="another body"):
            await ulak.notify.accept(request("Bye"), "key-1", wait_seconds=0)
        with pytest.raises(Refused):
            await ulak.notify.accept(request(), "key-2", wait_seconds=0)
        assert not waiting.done()
        waiting.cancel()


async def test_one_callers_key_is_not_anothers(make_in_memory, channel):
    async with make_in_memory() as ulak:
        first = await ulak.notify.accept(request(), "key-1", "ada")
        second = await ulak.notify.accept(request("Bye"), "key-1", "bob")
    assert first.id != second.id


async def test_a_key_counts_for_a_day(make, channel):
    async with make() as ulak:
        first = await ulak.notify.accept(request(), "key-1")
        ulak.clock.advance(23.9 * 3600)
        assert (await ulak.notify.accept(request(), "key-1")).id == first.id
        ulak.clock.advance(0.2 * 3600)
        assert (await ulak.notify.accept(request("Bye"), "key-1")).id != first.id


async def test_keys_that_no_longer_count_are_pruned(make, channel):
    async with make(work=False) as ulak:
        await ulak.notify.accept(request(), "old")
        ulak.clock.advance(25 * 3600)
        await ulak.notify.accept(request(), "new")
        assert await ulak.store.write(prune, 24 * 3_600_000) == 1
        assert await ulak.store.write(prune, 24 * 3_600_000) == 0


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_has_a_sensible_length(make_in_memory, key):
    async with make_in_memory(work=False) as ulak:
        with pytest.raises(Invalid, match="1 to 255"):
            await ulak.notify.accept(request(), key)


async def test_a_repeated_batch_gets_the_first_answers_item_by_item(make, channel):
    items = [msgspec.json.encode(request(body)) for body in ("one", "two")]
    async with make() as ulak:
        first = await ulak.notify.accept_batch(items, "batch-1")
        assert await ulak.notify.accept_batch(items, "batch-1") == first
        changed = await ulak.notify.accept_batch([items[0], items[0]], "batch-1")
        await drain(ulak)
    assert changed[0] == first[0]
    assert isinstance(changed[1], Conflict)
    assert sorted(message.body for message in channel.messages) == ["one", "two"]


@pytest.mark.parametrize("number", [1, 3])
async def test_a_batch_with_another_number_of_items_is_refused_as_a_whole(make, channel, number):
    items = [msgspec.json.encode(request(body)) for body in ("one", "two", "three")]
    async with make() as ulak:
        first = await ulak.notify.accept_batch(items[:2], "batch-1")
        with pytest.raises(Conflict, match="a batch of another size"):
            await ulak.notify.accept_batch(items[:number], "batch-1")
        assert await ulak.notify.accept_batch(items[:2], "batch-1") == first
        await ulak.notify.accept_batch(items[:number], "batch-1", "bob")
        await drain(ulak)
    assert len(channel.messages) == 2 + number
