"""Instants: who uses the Python API gets and gives aware datetimes in UTC, whatever the store keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.flow.stores import events_with
from ulak import BreakerPolicy, Invalid, NewJob, Permanent, Transient
from ulak.spine.units.dead_letters import Filter
from ulak.spine.units.hold import count_held, hold_all, let_go
from ulak.testing import advance, drain

START = datetime(2027, 1, 15, 8, tzinfo=UTC)  # where the manual clock stands
SECOND = timedelta(seconds=1)


async def test_a_handler_sees_when_its_job_was_accepted_and_when_this_attempt_started(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", delay_seconds=1.5)
        await drain(ulak)
        await advance(ulak, 2)
    (job,) = recorder.jobs
    assert (job.accepted_at, job.started_at) == (START, START + 2 * SECOND)
    assert job.accepted_at.tzinfo is job.started_at.tzinfo is UTC


async def test_a_record_and_its_timeline_tell_instants_in_utc(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Transient("busy")]
    expires_at = (START + timedelta(hours=1)).astimezone(timezone(timedelta(hours=3)))
    async with ulak:
        job = await ulak.enqueue("mail.send", delay_seconds=1, expires_at=expires_at)
        await advance(ulak, 1)
        waiting = await ulak.jobs.get(job)
        await advance(ulak, 60)
        done = await ulak.jobs.get(job)
    accepted, started, retried = waiting.timeline
    assert (accepted.at, started.at, retried.at) == (START, START + SECOND, START + SECOND)
    assert (retried.word, retried.detail["until"]) == ("retried", waiting.due_at)
    assert START + SECOND < waiting.due_at < START + 4 * SECOND
    assert (waiting.accepted_at, waiting.settled_at) == (START, None)
    assert (waiting.expires_at, waiting.expires_at.tzinfo) == (expires_at, UTC)
    assert done.started_at == done.settled_at == done.timeline[-1].at == START + 61 * SECOND


async def test_counts_tell_since_when_the_oldest_waits_and_events_when_they_were(make):
    async with make() as ulak:
        await ulak.enqueue_many([NewJob("mail.send"), NewJob("mail.send", delay_seconds=60)])
        ulak.clock.advance(5)
        await ulak.enqueue("mail.send")
        counts = await ulak.jobs.counts()
        events = await events_with(ulak, "accepted", times=3)
    assert counts == {"mail.send": {"ready": 2, "deferred": 1, "oldest_at": START}}
    assert [event.at for event in events if event.name == "accepted"] == [START, START, START + 5 * SECOND]


async def test_dead_letters_are_found_between_two_instants(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=1)
    recorder.answers = [Permanent("no such mailbox")] * 2
    async with ulak:
        first = await ulak.enqueue("mail.send")
        await drain(ulak)
        ulak.clock.advance(60)
        second = await ulak.enqueue("mail.send")
        await drain(ulak)
        noon_there = (START + 30 * SECOND).astimezone(timezone(timedelta(hours=-5)))
        assert await ulak.jobs.find_dead(Filter(died_before=noon_there)) == [first]
        assert [one async for one in ulak.jobs.redrive_all(Filter(died_after=noon_there))] == [second]


@pytest.mark.parametrize("bound", ["died_before", "died_after"])
async def test_a_bound_without_a_time_zone_is_refused_by_name(make, bound):
    async with make() as ulak:
        with pytest.raises(Invalid, match=f"{bound}: .* has no time zone") as refused:
            await ulak.jobs.find_dead(Filter(**{bound: datetime(2027, 1, 1)}))
    assert refused.value.fields == [(bound, "needs a time zone")]


async def test_an_instant_at_the_end_of_all_years_is_kept_and_shown(make):
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    async with make() as ulak:
        job = await ulak.enqueue("mail.send", expires_at=last)
        (record,) = await ulak.jobs.list()
    assert record.id == job
    assert record.expires_at == datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)


async def test_a_job_that_was_due_before_1970_runs_at_once(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", due_at=datetime(1960, 1, 1, tzinfo=UTC))
        await drain(ulak)
    assert len(recorder.jobs) == 1


async def test_a_job_that_was_due_before_1970_is_held_and_let_go_like_any_other(make):
    async with make(work=False) as ulak:
        await ulak.enqueue("mail.send", due_at=datetime(1960, 1, 1, tzinfo=UTC))
        assert await ulak.write(hold_all, ulak.store.owner, 3) == 1
        assert await ulak.write(count_held) == 1
        assert await ulak.write(let_go) == 1
        (record,) = await ulak.jobs.list()
    assert record.due_at == datetime(1970, 1, 1, tzinfo=UTC)


async def test_a_breaker_tells_until_when_it_stays_open(make):
    async with make() as ulak:
        breakers = ulak.loops.breakers
        policy = BreakerPolicy(failures=2, open_seconds=10)
        breakers.failed("shop", policy, ulak.clock.now())
        (closed,) = breakers.all()
        breakers.failed("shop", policy, ulak.clock.now())
        (opened,) = breakers.all()
    assert (closed.state, closed.until_at) == ("closed", None)
    assert (opened.state, opened.until_at) == ("open", START + 10 * SECOND)
