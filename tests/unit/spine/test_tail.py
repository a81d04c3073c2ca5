"""Many who follow the log share one look at it; nobody misses what was committed before he asked."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, contextmanager

import pytest

from ulak.clock import ManualClock, to_datetime
from ulak.errors import Unavailable
from ulak.spine.event import EventRecord
from ulak.spine.loops.tail import END_SECONDS, LOOK_SECONDS, Tail, TailPage


class Log:
    """A store that counts how often it is read, and can be made slow or broken."""

    multi_process = False

    def __init__(self):
        self.clock, self.newest, self.reads, self.watchers = ManualClock(), 0, [], []
        self.failure = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self, _work, cursor, _limit):
        self.reads.append(cursor)
        at = to_datetime(self.clock.now())
        found = [EventRecord(seq, at, "done", 1, "mail", None) for seq in range(cursor + 1, self.newest + 1)]
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return None, found, False

    @contextmanager
    def watching(self):
        watcher = asyncio.Event()
        self.watchers.append(watcher)
        yield watcher
        self.watchers.remove(watcher)

    def commit(self):
        self.newest += 1
        for watcher in self.watchers:
            watcher.set()


class Follower:
    def __init__(self, tail, cursor=0):
        self.seen, self.pages = [], 0
        self.task = asyncio.create_task(self._follow(tail, cursor))

    async def _follow(self, tail, cursor):
        async with aclosing(tail.follow(TailPage(cursor))) as pages:
            async for page in pages:
                self.pages += 1
                self.seen += [event.seq for event in page.events]


async def settle():
    """Let everybody go on until all wait."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
async def crowd():
    log = Log()
    tail = Tail(log, log.watching)
    followers = [Follower(tail) for _ in range(20)]
    await settle()
    yield log, tail, followers
    tail.close()
    for follower in followers:
        follower.task.cancel()
    await asyncio.gather(*(follower.task for follower in followers), return_exceptions=True)


async def test_one_commit_is_read_once_for_all(crowd):
    log, _, followers = crowd
    log.reads.clear()
    log.commit()
    await settle()
    assert [follower.seen for follower in followers] == [[1]] * 20
    assert log.reads == [0, 1]  # the news, and that there is no more


async def test_an_idle_log_is_looked_at_once_for_all(crowd):
    log, _, followers = crowd
    log.reads.clear()
    pages = followers[0].pages
    log.clock.advance(LOOK_SECONDS)
    await settle()
    assert log.reads == [0]
    assert followers[0].pages == pages + 1


async def test_who_stands_elsewhere_reads_for_himself_and_then_with_the_others(crowd):
    log, tail, followers = crowd
    for _ in range(3):
        log.commit()
    await settle()
    late = Follower(tail, 1)
    await settle()
    assert late.seen == [2, 3]
    log.reads.clear()
    log.commit()
    await settle()
    assert (late.seen[-1], followers[0].seen[-1], log.reads) == (4, 4, [3, 4])
    late.task.cancel()


async def test_a_commit_during_a_look_is_seen_at_the_next(crowd):
    log, _, followers = crowd
    log.gate.clear()
    log.commit()
    await settle()  # all wait for a look that began before the next commit
    log.commit()
    log.gate.set()
    await settle()
    assert [follower.seen for follower in followers] == [[1, 2]] * 20


async def test_who_asks_after_a_commit_does_not_get_an_older_end(crowd):
    log, _, followers = crowd
    log.clock.advance(LOOK_SECONDS)
    await settle()  # the end was seen just now
    log.clock.advance(END_SECONDS / 10)
    log.commit()
    await settle()
    assert [follower.seen for follower in followers] == [[1]] * 20


async def test_one_that_leaves_does_not_take_the_look_from_the_others(crowd):
    log, _, followers = crowd
    log.gate.clear()
    log.commit()
    await settle()
    followers[0].task.cancel()
    await settle()
    log.gate.set()
    await settle()
    assert [follower.seen for follower in followers[1:]] == [[1]] * 19


async def test_a_failure_reaches_everybody_who_waits(crowd):
    log, _, followers = crowd
    log.failure = Unavailable("closing")
    log.commit()
    await settle()
    assert {type(follower.task.exception()) for follower in followers} == {Unavailable}


async def test_followers_leave_when_it_is_closed(crowd):
    log, tail, followers = crowd
    log.reads.clear()
    tail.close()
    log.commit()
    await settle()
    assert all(follower.task.done() for follower in followers)
    assert (log.reads, log.watchers) == ([], [])
