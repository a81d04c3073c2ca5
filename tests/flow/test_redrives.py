"""A redrive at a rate: its progress is the store's, so every process shows it and may stop it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.flow.conftest import build
from tests.flow.stores import POSTGRES, address_of
from ulak import Conflict, NewJob, Permanent
from ulak.spine.units.dead_letters import Filter
from ulak.testing import advance, drain


def doomed(ulak):
    @ulak.handles("doomed", max_attempts=1)
    async def die(job):
        raise Permanent("no such mailbox")

    return ulak


async def bury(ulak, number=3):
    await ulak.enqueue_many([NewJob("doomed", one) for one in range(number)])
    await drain(ulak)


async def sent(ulak, number):
    """Its progress, once so many went."""
    while (found := await ulak.redriver.progress()).redriven < number:
        await asyncio.sleep(0)
    return found


async def over(ulak):
    """Its progress, once it does not run any more."""
    while (found := await ulak.redriver.progress()).state == "running":
        await asyncio.sleep(0)
    return found


async def test_it_sends_one_after_another_and_tells_how_far_it_is(make):
    async with doomed(make()) as ulak:
        assert await ulak.redriver.progress() is None
        await bury(ulak)
        await ulak.redriver.start(Filter(kind="doomed"), 0.5, 3)
        for number in (1, 2, 3):
            found = await sent(ulak, number)
            assert (found.redriven, found.matched, found.state) == (number, 3, "running")
            await drain(ulak)
            await advance(ulak, 2)
        assert (await over(ulak)).state == "ended"


async def test_another_one_meanwhile_is_refused_and_possible_afterwards(make):
    async with doomed(make()) as ulak:
        await bury(ulak)
        await ulak.redriver.start(Filter(), 0.01, 3)
        with pytest.raises(Conflict, match="under way already"):
            await ulak.redriver.start(Filter(), 1, 3)
        await sent(ulak, 1)
        assert (await ulak.redriver.stop()).state == "stopped"
        with pytest.raises(Conflict, match="no redrive"):
            await ulak.redriver.stop()
        await ulak.redriver.start(Filter(), 0.01, 2)
        assert (await ulak.redriver.progress()).number == 2


async def test_one_that_was_stopped_sends_nothing_more(make):
    async with doomed(make()) as ulak:
        await bury(ulak)
        await ulak.redriver.start(Filter(), 1, 3)
        await sent(ulak, 1)
        await ulak.redriver.stop(who="ayse")
        await drain(ulak)
        await advance(ulak, 60)
        found = await ulak.redriver.progress()
        assert (found.redriven, found.state) == (1, "stopped")
        verbs = [(line.who, line.verb) for line in await ulak.audit.list()]
        assert ("ayse", "dead.redrive.stop") in verbs


async def test_one_whose_process_ended_has_failed_and_the_rest_can_be_sent(sqlite_address, clock):
    async with doomed(build(sqlite_address, clock)) as ulak:
        await bury(ulak)
        await ulak.redriver.start(Filter(), 0.01, 3)
        await sent(ulak, 1)
    async with doomed(build(sqlite_address, clock)) as ulak:
        found = await ulak.redriver.progress()
        assert (found.redriven, found.state) == (1, "failed")
        assert "is gone" in found.reason
        with pytest.raises(Conflict, match="no redrive"):
            await ulak.redriver.stop()
        await ulak.redriver.start(Filter(), 0.01, 2)
        assert (await sent(ulak, 1)).state == "running"


@pytest.fixture
def pair(tmp_path, clock):
    """Two Ulaks on one database, not open yet."""
    if not POSTGRES:
        pytest.skip("there is no PostgreSQL server to test with")
    with contextlib.contextmanager(address_of)("postgres", tmp_path) as address:
        yield [doomed(build(address, clock)) for _ in range(2)]


@pytest.mark.postgres
async def test_one_process_shows_and_stops_what_another_sends(pair):
    async with pair[0] as one, pair[1] as other:
        await bury(one)
        await one.redriver.start(Filter(), 0.01, 3)
        assert (await sent(other, 1)).state == "running"
        with pytest.raises(Conflict, match="under way already"):
            await other.redriver.start(Filter(), 1, 3)
        assert (await other.redriver.stop()).redriven == 1
        assert (await one.redriver.progress()).state == "stopped"
        one.clock.advance(100)
        await asyncio.wait([one.redriver._task])
        assert (await other.redriver.progress()).redriven == 1


@pytest.mark.postgres
async def test_another_process_tells_that_the_sender_is_gone(pair):
    async with pair[1] as other:
        async with pair[0] as one:
            await bury(one)
            await one.redriver.start(Filter(), 0.01, 3)
            assert (await sent(other, 1)).state == "running"
        found = await other.redriver.progress()
        assert (found.redriven, found.state) == (1, "failed")
