"""Ports: what a room offers to others, through the host, inside their own transactions."""

from __future__ import annotations

import pytest

from ulak.channels.message import NewMessage
from ulak.clock import to_datetime
from ulak.errors import Invalid
from ulak.spine.query import Query
from ulak.testing import drain

COLUMNS = "SELECT kind, key, slots, expires_at FROM job"
JOBS = Query("jobs", COLUMNS, COLUMNS, ())


async def test_a_posted_message_is_delivered_with_the_transaction_that_owes_it(make):
    ulak = make()
    async with ulak:
        (job,) = await ulak.write(ulak.post, [NewMessage("IN_APP", "ada", "Hello")])
        await drain(ulak)
        (item,) = await ulak.notify.inbox("ada")
        assert (item.id, item.body) == (job, "Hello")


async def test_a_unit_that_fails_posts_nothing(make):
    def unit(tx):
        ulak.post(tx, [NewMessage("IN_APP", "ada", "Hello")])
        raise Invalid("no")

    ulak = make()
    async with ulak:
        with pytest.raises(Invalid):
            await ulak.write(unit)
        await drain(ulak)
        assert await ulak.notify.inbox("ada") == []


async def test_a_bound_does_not_refuse_what_is_owed(make):
    ulak = make(work=False, notify={"capacity": 2, "admission": "reject"})
    async with ulak:
        ids = await ulak.write(ulak.post, [NewMessage("SMS", "+905551112233", "Hello")] * 5)
        assert len(set(ids)) == 5


async def test_a_message_that_can_not_be_sent_is_refused_in_the_unit(make):
    ulak = make(work=False)
    async with ulak:
        with pytest.raises(Invalid):
            await ulak.write(ulak.post, [NewMessage("CARRIER_PIGEON", "ada", "Hello")])


async def test_a_function_runs_on_a_process_of_the_engine(make_in_memory):
    async with make_in_memory() as ulak:
        assert await ulak.run(divmod, 7, 3) == (2, 1)
        assert await ulak.run(int, "11", base=2) == 3


async def test_a_posted_message_has_the_key_slots_breaker_and_expiry_of_one_that_was_sent(make, clock):
    ulak = make(work=False, channels={"webhook": {"slots_per_destination": 3}})
    url, ends_at = "https://hooks.example.org/ulak", clock.now() + 60_000
    async with ulak:
        await ulak.write(ulak.post, [NewMessage("WEBHOOK", url, "Hello", expires_at=ends_at)])
        await ulak.notify.send("WEBHOOK", url, "Hello", expires_at=to_datetime(ends_at))
        posted, sent = await ulak.store.read(lambda tx: tx.rows(JOBS))
        assert posted == sent
        kind, key, slots, expires_at = posted
        assert (key is not None, slots, expires_at) == (True, 3, ends_at)
        assert ulak.handlers.get(kind).breaker is not None
