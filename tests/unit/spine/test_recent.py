"""What a process has just committed is followed from memory: the same events, in the same order, with no gap."""

from __future__ import annotations

import random
from contextlib import aclosing

import msgspec
import pytest

from tests.api.serving import serving
from ulak import NewJob
from ulak.spine.event import of_blocks
from ulak.spine.loops.recent import MAX_BYTES, Recent
from ulak.spine.loops.tail import PAGE
from ulak.spine.store import Block


def block(first, count, text=""):
    body = msgspec.msgpack.encode([("accepted", list(range(count)), "mail", text)])
    return Block(first, count, 1_700_000_000_000, body)


def numbers(events):
    return [event.seq for event in events]


def test_what_follows_a_cursor_is_here_whole_or_not_at_all():
    recent, log, first, last = Recent(50), [], 1, 0
    dice = random.Random(7)
    for _ in range(300):
        log.append(block(first, dice.choice([1, 1, 2, 9, 60])))
        first += log[-1].number
        if dice.random() < 0.9:
            recent.add(log[-1])
            last = first - 1
        for cursor in range(max(0, first - 80), first + 2):
            found = recent.above(cursor, 20)
            assert found == of_blocks(log, cursor, 20)[: len(found)]  # the log's own, from the next one on
            assert len(found) == 20 or not found or found[-1].seq == last


def test_little_is_kept():
    recent = Recent(1000)
    for number in range(3000):
        recent.add(block(number + 1, 1))
    assert numbers(recent.above(2000, 5)) == [2001, 2002, 2003, 2004, 2005]
    assert recent.above(1999, 5) == []
    recent.add(block(3001, 1, "x" * MAX_BYTES))
    assert recent.above(3000, 5) == []  # too large to keep: the store has it
    recent.add(block(3002, 1))
    assert (recent.above(3000, 5), numbers(recent.above(3001, 5))) == ([], [3002])


@pytest.mark.parametrize("number", [1, PAGE + 5])
async def test_who_keeps_up_reads_no_page_from_the_store(number, monkeypatch):
    async with serving(work=False) as served:
        tail, reads = served.ulak.loops.tail, []
        whole = served.ulak.store.read

        async def read(work, *arguments):
            reads.append(work.__name__)
            return await whole(work, *arguments)

        async with aclosing(tail.follow(await tail.begin(None))) as pages:
            await anext(pages)
            monkeypatch.setattr(served.ulak.store, "read", read)
            await served.ulak.enqueue_many([NewJob("mail", {}) for _ in range(number)])
            seen = []
            async for page in pages:
                seen += numbers(page.events)
                if len(seen) == number:
                    break
        assert seen == list(range(1, number + 1))
        assert reads.count("read_on") == (0 if number <= PAGE else 2)
