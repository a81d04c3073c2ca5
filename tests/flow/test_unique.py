"""Unique keys: one live job per kind and key, however many ask at once."""

from __future__ import annotations

import asyncio

from ulak import NewJob
from ulak.testing import advance, drain


async def test_a_second_job_with_the_same_unique_key_answers_the_first_ones_id(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        first = await ulak.enqueue("mail.send", 1, unique_key="order-1", delay_seconds=60)
        assert await ulak.enqueue("mail.send", 2, unique_key="order-1") == first
        assert await ulak.enqueue("sms.send", 3, unique_key="order-1") != first  # per kind
        await advance(ulak, 60)
        again = await ulak.enqueue("mail.send", 4, unique_key="order-1")  # the first has left
        assert again != first
        await drain(ulak)
    assert recorder.payloads == [1, 4]


async def test_of_many_who_ask_at_once_one_gets_the_key(make):
    ulak = make(work=False)
    async with ulak:
        ids = await asyncio.gather(*(ulak.enqueue("mail.send", n, unique_key="order-1") for n in range(200)))
        assert len(set(ids)) == 1
        batch = await ulak.enqueue_many([NewJob("mail.send", n, unique_key=f"order-{n % 3}") for n in range(9)])
        assert len(set(batch)) == 3
        assert batch[1] == ids[0]
        assert (await ulak.jobs.tally())["mail.send"]["accepted"] == 3


async def test_a_duplicate_takes_no_capacity(make, recorder):
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=2)
    async with ulak:
        for _ in range(10):
            await ulak.enqueue("mail.send", unique_key="order-1")
        assert await ulak.offer("mail.send") is not None
        assert await ulak.offer("mail.send") is None
