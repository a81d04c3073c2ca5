"""The event log: commit order, read from a cursor, nothing missed, nothing twice; pruned in whole blocks."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import build
from tests.flow.stores import events_with
from ulak import Conflict, NewJob
from ulak.spine.units.prune import PRUNE, Ages
from ulak.testing import drain

DAY = 86_400_000


async def test_a_reader_that_follows_a_cursor_sees_every_event_once_and_in_order(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=50)
    seen = []

    async def follow(number):
        cursor = 0
        while sum(event.name == "done" for event in seen) < number:
            ulak.loops.changed.clear()
            found = await ulak.jobs.events(after=cursor, limit=37)
            seen.extend(found)
            if found:
                cursor = found[-1].seq
            else:
                await ulak.loops.changed.wait()

    async def produce(producer):
        for number in range(20):
            await ulak.enqueue("mail.send", (producer, number))

    async with ulak:
        following = asyncio.create_task(follow(400))
        await asyncio.gather(*(produce(producer) for producer in range(20)))
        await drain(ulak)
        await following
    sequence = [event.seq for event in seen]
    assert sequence == sorted(set(sequence))
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))
    for job in {event.job for event in seen}:
        assert [event.name for event in seen if event.job == job] == ["accepted", "started", "done"]


async def test_whole_blocks_are_pruned_by_age_and_a_cursor_goes_on_behind_them(make):
    ulak = make(work=False)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send")] * 10)
        ulak.clock.advance(3600)
        await ulak.enqueue_many([NewJob("mail.send")] * 5)
        events = await events_with(ulak, "accepted", 15)
        pruned = await ulak.store.submit(PRUNE, Ages(DAY, 1800_000, DAY))
        assert pruned["event_block"] == 1
        left = await ulak.jobs.events()
        assert [event.seq for event in left] == [event.seq for event in events[10:]]


async def test_the_sequence_goes_on_after_everything_was_pruned_and_the_process_restarted(sqlite_address, clock):
    async with build(sqlite_address, clock, work=False) as ulak:
        await ulak.enqueue_many([NewJob("mail.send")] * 100)
        cursor = (await ulak.jobs.events())[-1].seq
        clock.advance(30 * 86_400)
        await ulak.store.submit(PRUNE, Ages(DAY, DAY, DAY))
    async with build(sqlite_address, clock, work=False) as ulak:
        await ulak.store.submit(PRUNE, Ages(DAY, DAY, DAY))
        await ulak.enqueue("mail.send")
        (event,) = await ulak.jobs.events(after=cursor)
        assert event.seq == cursor + 1


async def test_a_cursor_beyond_the_newest_event_is_refused_and_the_newest_is_not(make):
    async with make(work=False) as ulak:
        assert await ulak.jobs.events(after=0) == []
        await ulak.enqueue("mail.send")
        (event,) = await events_with(ulak, "accepted", 1)
        assert await ulak.jobs.events(after=event.seq) == []
        with pytest.raises(Conflict, match=f"{event.seq + 1} is beyond the newest event, {event.seq}: .*restored"):
            await ulak.jobs.events(after=event.seq + 1)


async def test_history_and_dead_letters_are_pruned_by_their_own_age(make, recorder):
    from ulak import Permanent

    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [None, Permanent("no")]
    async with ulak:
        done, dead = await ulak.enqueue_many([NewJob("mail.send"), NewJob("mail.send")])
        await drain(ulak)
        ulak.clock.advance(3600)
        live = await ulak.enqueue("mail.later", delay_seconds=60)
        pruned = await ulak.store.submit(PRUNE, Ages(history=1800_000, events=DAY, dead=DAY))
        assert (pruned["past"], pruned["dead"]) == (1, 0)
        assert (await ulak.jobs.get(dead)).status == "dead"
        assert (await ulak.jobs.get(live)).status == "deferred"
        pruned = await ulak.store.submit(PRUNE, Ages(DAY, DAY, 1800_000))
        assert pruned["dead"] == 1
        assert done not in {record.id for record in await ulak.jobs.list()}


async def test_the_ledger_of_words_adds_up(make, recorder):
    from ulak import Cancel, Permanent, Retry

    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=2)
    recorder.answers = [None, Permanent("no"), Cancel("no"), Retry(1), None, Permanent("no")]
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send")] * 6)
        waiting = await ulak.enqueue("mail.send", delay_seconds=3600)
        await ulak.enqueue("mail.send", delay_seconds=3600)
        await drain(ulak)
        await ulak.jobs.cancel(waiting)
        (first, *_) = await ulak.jobs.list(status="dead")
        await ulak.jobs.redrive([first.id])
        await drain(ulak)
        tally = (await ulak.jobs.tally())["mail.send"]
        live = sum(number for name, number in (await ulak.jobs.counts())["mail.send"].items() if name != "oldest_at")
    ended = tally["done"] + tally["cancelled"] + tally["dead"] + tally.get("expired", 0)
    assert tally["accepted"] == 8 == ended - tally["redriven"] + live
