"""Run at a time: deadlines to the millisecond, storms of them, expiry, cron, and a clock that is stepped."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from tests.flow.conftest import HANG_SECONDS, build
from tests.flow.stores import claim, nothing_is_claimed
from ulak import Backoff, Invalid, NewJob, Transient
from ulak.clock import to_datetime
from ulak.spine.query import Queries
from ulak.spine.units.cron import FIRE_DUE, CronEntry, Tick
from ulak.spine.units.expire import PAGE
from ulak.spine.units.hold import hold_all
from ulak.testing import advance, drain

sql = Queries("ulak.spine")


async def test_a_job_runs_at_its_time_to_the_millisecond(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", "delay", delay_seconds=1.5)
        await ulak.enqueue("mail.send", "instant", due_at=to_datetime(ulak.clock.now() + 1400))
        await advance(ulak, 1.399)
        assert recorder.payloads == []
        await advance(ulak, 0.001)
        assert recorder.payloads == ["instant"]
        await advance(ulak, 0.1)
    assert recorder.payloads == ["instant", "delay"]


async def test_an_earlier_newcomer_wakes_the_timers_without_help(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    began = ulak.clock.now()
    async with ulak:
        for number in range(50):
            await ulak.enqueue("mail.send", "far", delay_seconds=3600)
            await ulak.enqueue("mail.send", number, delay_seconds=0.5)
            ulak.clock.advance(0.5)
            await recorder.until(number + 1)  # by its own loop, not by promote_due
    assert recorder.payloads == list(range(50))
    assert [job.started_millis - began for job in recorder.jobs] == [500 * (number + 1) for number in range(50)]


async def test_thousands_that_are_due_in_the_same_millisecond_all_run_once(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=500)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", n, delay_seconds=60) for n in range(3000)])
        await drain(ulak)
        assert recorder.jobs == []
        await advance(ulak, 60)
        assert (await ulak.jobs.tally())["mail.send"]["done"] == 3000
    assert sorted(recorder.payloads) == list(range(3000))


async def test_an_instant_without_a_time_zone_is_refused(make):
    ulak = make(work=False)
    async with ulak:
        with pytest.raises(Invalid, match="time zone"):
            await ulak.enqueue("mail.send", due_at=datetime(2027, 1, 1))
        with pytest.raises(Invalid, match="time zone"):
            await ulak.enqueue("mail.send", expires_at=datetime(2027, 1, 1))


async def test_work_that_is_too_old_is_dropped_and_counted_and_its_continuation_is_told(make, recorder):
    ulak = make()
    told = []

    @ulak.handles("order.late")
    async def late(job):
        told.append(job.payload["outcome"])

    recorder.on(ulak, "mail.send")
    async with ulak:
        async with nothing_is_claimed(ulak):
            job = await ulak.enqueue(
                "mail.send", expires_at=to_datetime(ulak.clock.now() + 1000), key="ada", continuation="order.late"
            )
            await ulak.enqueue("mail.send", "behind", key="ada")
            ulak.clock.advance(1)
        await drain(ulak)
        record = await ulak.jobs.get(job)
        tally = (await ulak.jobs.tally())["mail.send"]
    assert record.status == "expired"
    assert (tally["expired"], tally["done"]) == (1, 1)
    assert recorder.payloads == ["behind"]
    assert told == ["expired"]


async def test_a_retry_beyond_the_expiry_is_dropped(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=Backoff(10, jitter=0))
    recorder.answers = [Transient("busy")]
    async with ulak:
        job = await ulak.enqueue("mail.send", expires_at=to_datetime(ulak.clock.now() + 5000))
        await drain(ulak)
        await advance(ulak, 10)
        assert (await ulak.jobs.get(job)).status == "expired"
    assert len(recorder.jobs) == 1


async def test_what_nobody_claims_expires_too(make, recorder):
    """Its kind has no handler here, or it waits for a time after its end, or behind another of its key."""
    ulak = make()
    recorder.on(ulak, "mail.told")
    async with ulak:
        soon, late = (to_datetime(ulak.clock.now() + millis) for millis in (5000, 60_000))
        (orphan, deferred, first, behind, young) = await ulak.enqueue_many(
            [
                NewJob("mail.unknown", "orphan", expires_at=soon, continuation="mail.told"),
                NewJob("mail.unknown", due_at=late, expires_at=soon),
                NewJob("mail.unknown", key="ada", expires_at=soon),
                NewJob("mail.unknown", key="ada", expires_at=soon),
                NewJob("mail.unknown", key="ada", expires_at=late),
            ]
        )
        await advance(ulak, 20)
        statuses = [(await ulak.jobs.get(job)).status for job in (orphan, deferred, first, behind, young)]
        tally = (await ulak.jobs.tally())["mail.unknown"]
    assert statuses == ["expired"] * 4 + ["ready"]
    assert (tally["accepted"], tally["expired"]) == (5, 4)
    assert [payload["payload"] for payload in recorder.payloads] == ["orphan"]


async def test_more_expire_than_one_look_takes_and_what_runs_is_left_alone(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.slow")
    recorder.release = asyncio.Event()
    async with ulak:
        soon = to_datetime(ulak.clock.now() + 5000)
        running = await ulak.enqueue("mail.slow", expires_at=soon)
        await recorder.started.wait()
        await ulak.enqueue_many([NewJob("mail.unknown", expires_at=soon) for _ in range(2 * PAGE + 1)])
        ulak.clock.advance(5)
        await ulak.loops.expire()
        tally = (await ulak.jobs.tally())["mail.unknown"]
        assert (await ulak.jobs.get(running)).status == "running"
        recorder.release.set()
        await drain(ulak)
        assert (await ulak.jobs.get(running)).status == "done"
    assert tally["expired"] == 2 * PAGE + 1


async def test_a_cron_entry_fires_once_per_time_and_survives_a_restart(sqlite_address, clock, recorder):
    clock.step(-(clock.now() % 3_600_000) / 1000)  # the full hour

    def open_one():
        ulak = build(sqlite_address, clock)
        recorder.on(ulak, "report.make")
        ulak.cron("hourly", "0 * * * *", "report.make", {"report": "sales"})
        return ulak

    async def settle(ulak):
        for _ in range(3):
            await asyncio.sleep(0.01)
            await drain(ulak)

    async with open_one() as ulak:
        await settle(ulak)
        assert recorder.jobs == []
        for _ in range(3):
            await advance(ulak, 3600)
            await settle(ulak)
        assert len(recorder.jobs) == 3
    clock.advance(5 * 3600)  # nobody ran meanwhile: those times fire once, late
    async with open_one() as ulak:
        await settle(ulak)
        assert len(recorder.jobs) == 4
    assert recorder.payloads[0]["entry"] == "hourly"
    assert recorder.payloads[0]["payload"] == {"report": "sales"}


async def test_a_restored_store_does_not_fire_what_was_fired_after_the_backup(make):
    entry = CronEntry("hourly", "0 * * * *", "report.make")
    async with make(work=False) as ulak:
        await ulak.store.submit(FIRE_DUE, Tick((entry,)))
        ulak.clock.advance(5 * 3600)
        await ulak.write(hold_all, ulak.store.owner, 3)
        assert (await ulak.store.submit(FIRE_DUE, Tick((entry,))))[1] == []
        ulak.clock.advance(3600)
        assert (await ulak.store.submit(FIRE_DUE, Tick((entry,))))[1] == ["hourly"]


async def test_a_cron_entry_with_another_expression_begins_anew(make):
    entry = CronEntry("often", "0 * * * *", "report.make")
    async with make(work=False) as ulak:
        await ulak.store.submit(FIRE_DUE, Tick((entry,)))
        ulak.clock.advance(5 * 3600)
        changed = Tick((replace(entry, expression="30 * * * *"),))
        assert (await ulak.store.submit(FIRE_DUE, changed))[1] == []
        ulak.clock.advance(3600)
        assert (await ulak.store.submit(FIRE_DUE, changed))[1] == ["often"]


async def test_a_process_goes_on_firing_by_its_own_words_when_one_with_others_has_started(make, recorder):
    """As when a deploy is taken back: the entry is not left to a process that may be gone."""
    ulak = make()
    recorder.on(ulak, "report.make")
    ulak.cron("report", "0 * * * *", "report.make")
    async with ulak:
        while await ulak.store.read(lambda tx: tx.row(sql.read_cron, name="report")) is None:
            await asyncio.sleep(0)
        await ulak.store.submit(FIRE_DUE, Tick((CronEntry("report", "30 3 * * *", "report.make"),)))
        for number in (1, 2):
            ulak.clock.advance(3600)
            await recorder.until(number)


async def test_a_cron_expression_is_checked_when_it_is_given(make):
    ulak = make()
    with pytest.raises(Invalid, match="five fields"):
        ulak.cron("bad", "every day", "report.make")
    with pytest.raises(Invalid, match="time zone"):
        ulak.cron("bad", "0 * * * *", "report.make", time_zone="Mars/Olympus")


async def test_a_clock_stepped_back_neither_skips_a_backoff_nor_a_delay(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=Backoff(10, jitter=0), max_attempts=3)
    recorder.answers = [None, Transient("busy")]
    async with ulak:
        await ulak.enqueue("mail.send", "before")  # the store has seen this time
        await drain(ulak)
        ulak.clock.step(-3600)
        await ulak.enqueue("mail.send", "fails")
        later = await ulak.enqueue("mail.send", "later", delay_seconds=60)
        await drain(ulak)
        assert recorder.payloads == ["before", "fails"]
        assert (await ulak.jobs.get(later)).status == "deferred"
        await advance(ulak, 25)  # time goes on, at half its pace at least, until the wall has caught up
        assert recorder.payloads == ["before", "fails", "fails"]
        await advance(ulak, 120)
        assert recorder.payloads == ["before", "fails", "fails", "later"]
        async with asyncio.timeout(HANG_SECONDS):
            while not ulak.telemetry.counters[("clock_steps", "", "back")]:  # the upkeep asks the store before it looks
                await asyncio.sleep(0)
        assert ulak.telemetry.counters[("clock_steps", "", "back")] == 1


async def test_a_clock_stepped_forward_is_noticed_and_what_is_due_runs(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", delay_seconds=1800)
        ulak.clock.step(3600)
        await advance(ulak, 1)
        assert len(recorder.jobs) == 1
        while not ulak.telemetry.counters[("clock_steps", "", "forward")]:
            await asyncio.sleep(0)


async def test_no_id_is_given_twice_when_the_clock_is_set_back_over_a_restart(sqlite_address, clock):
    """Ids run ahead of the clock when many are taken in a millisecond; a restart must not fall behind them."""
    async with build(sqlite_address, clock, work=False) as ulak:
        first = await ulak.enqueue_many([NewJob("mail.send")] * 10_000)
    async with build(sqlite_address, clock, work=False) as ulak:
        second = await ulak.enqueue_many([NewJob("mail.send")] * 10_000)
    clock.step(-3600)
    async with build(sqlite_address, clock, work=False) as ulak:
        third = await ulak.enqueue_many([NewJob("mail.send")] * 10_000)
        assert (await ulak.jobs.counts())["mail.send"]["ready"] == 30_000
    assert len({*first, *second, *third}) == 30_000
    assert max(first) < min(second) <= max(second) < min(third)


async def test_a_lease_is_not_delayed_by_a_step_of_the_clock(make):
    """What a process holds is its own for as long as it lives; a step must not free it for others."""
    ulak = make(work=False)
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await claim(ulak, "mail.send")
        ulak.clock.step(86_400)
        await ulak.loops._rescuer.beat()
        assert (await ulak.jobs.get(job)).status == "running"
