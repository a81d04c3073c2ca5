"""Circuit breakers: open after failures in a row, try one, close; visible, resettable, and never stuck."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from ulak import Backoff, BreakerPolicy, Done, NewJob, Permanent, Retry, Snooze, Transient, Unavailable
from ulak.clock import to_datetime
from ulak.http.app import build_app
from ulak.spine.breaker import load_breakers, save_breakers
from ulak.spine.outcome import Dead
from ulak.testing import advance, drain

POLICY = BreakerPolicy(failures=3, open_seconds=10, cap_seconds=60)


def breaking(ulak, recorder, **options):
    return recorder.on(ulak, "hook.send", breaker=POLICY, concurrency=20, **options)


async def states(ulak):
    return {breaker.destination: breaker.state for breaker in ulak.loops.breakers.all()}


async def test_it_opens_tries_one_and_closes(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(10)])
        await drain(ulak)
        assert await states(ulak) == {"shop": "open"}
        before = len(recorder.jobs)
        await advance(ulak, 5)
        assert len(recorder.jobs) == before  # nobody is sent to a destination that is down
        await advance(ulak, 10)
        while len(recorder.jobs) < before + 10:
            await advance(ulak, 1)
        assert await states(ulak) == {}
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 10


async def test_a_handler_that_gives_up_because_its_destination_failed_counts_as_a_failure(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Dead("down", "transient")] * 3
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=1) for n in range(4)])
        await drain(ulak)
        assert await states(ulak) == {"shop": "open"}
        assert len(recorder.jobs) == 3


async def test_an_open_breaker_touches_only_the_jobs_that_hold_a_slot(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(500)])
        await drain(ulak)
        counts = (await ulak.jobs.counts())["hook.send"]
        tally = (await ulak.jobs.tally())["hook.send"]
        # Three have failed and gave their slots on; the three that came after them hold theirs while it is open.
        assert (counts["deferred"], counts["behind"]) == (6, 494)
        assert tally["retried"] + tally.get("snoozed", 0) <= 6


async def test_a_job_that_an_open_breaker_stops_is_not_timed_as_a_run(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3, delay_seconds=1) for n in range(3)])
        await advance(ulak, 1)
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=6, delay_seconds=1) for n in range(3)])
        await advance(ulak, 1)
        telemetry = ulak.telemetry
        assert telemetry.counters[("breaker_stops", "hook.send", "")] >= 3
        times = telemetry.times("hook.send")
        assert [sum(one.counts) for one in (times.wait, times.lateness, times.run)] == [len(recorder.jobs)] * 3


async def test_those_under_way_when_it_opens_do_not_lengthen_the_pause(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.release = asyncio.Event()
    recorder.answers = [Transient("down")] * 20
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=20) for n in range(20)])
        while recorder.at_once < 20:
            await asyncio.sleep(0)
        recorder.release.set()
        await drain(ulak)
        (breaker,) = ulak.loops.breakers.all()
        assert breaker.until_at == to_datetime(ulak.clock.now() + 10_000)


async def test_the_pause_doubles_up_to_its_cap_while_the_trial_fails(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 100
    async with ulak:
        await ulak.enqueue("hook.send", key="shop")
        await drain(ulak)
        pauses = []
        while len(pauses) < 5:
            opened = {b.until_at for b in ulak.loops.breakers.all() if b.state == "open"}
            await advance(ulak, 1)
            (breaker,) = ulak.loops.breakers.all()
            if breaker.state == "open" and breaker.until_at not in opened:
                pauses.append((breaker.until_at - to_datetime(ulak.clock.now())) // timedelta(seconds=1))
    assert pauses == [10, 20, 40, 60, 60]


async def test_an_answer_of_the_destination_ends_the_trial_even_when_the_job_fails_for_good(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3 + [Permanent("404")] + [Done()] * 5
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop") for n in range(4)])
        for _ in range(40):
            await advance(ulak, 2)
        tally = (await ulak.jobs.tally())["hook.send"]
        assert (tally["dead"], tally["done"]) == (1, 3)
        assert await states(ulak) == {}


@pytest.mark.parametrize(
    "answer",
    [Permanent("too long", unsent=True), Snooze(60), Retry(60), Done(unsent=True), Dead("no words", unsent=True)],
)
async def test_an_attempt_that_says_nothing_of_the_destination_does_not_hide_that_it_fails(make, recorder, answer):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down"), Transient("down"), answer, Transient("down")]
    async with ulak:
        for number in range(4):
            await ulak.enqueue("hook.send", number, key="shop", slots=9)
            await drain(ulak)
        assert await states(ulak) == {"shop": "open"}


async def test_a_job_that_ends_elsewhere_because_its_destination_failed_counts_as_a_failure(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Done(error_class="transient")] * 3
    async with ulak:
        for number in range(3):
            await ulak.enqueue("hook.send", number, key="shop", slots=9)
            await drain(ulak)
        assert await states(ulak) == {"shop": "open"}


async def test_a_trial_that_was_not_sent_closes_nothing_and_is_followed_by_the_next_at_once(make, recorder):
    ulak = make()
    breaking(ulak, recorder, backoff=Backoff(first_seconds=3600))
    recorder.answers = [Transient("down")] * 3 + [Permanent("too long", unsent=True)] * 2 + [Transient("down")]
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(10)])
        await drain(ulak)
        for _ in range(14):
            await advance(ulak, 1)
        assert len(recorder.jobs) == 6
        assert await states(ulak) == {"shop": "open"}


async def test_a_trial_that_is_cancelled_is_followed_by_another(make, recorder):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        first, _ = await ulak.enqueue_many([NewJob("hook.send", n, key="shop") for n in range(2)])
        while await states(ulak) != {"shop": "open"}:
            await advance(ulak, 2)
        recorder.release = asyncio.Event()
        recorder.started.clear()
        while not recorder.started.is_set():
            ulak.clock.advance(1)
            await ulak.loops.alarm.promote_due()
            await asyncio.sleep(0.001)
        assert await states(ulak) == {"shop": "half-open"}
        await ulak.jobs.cancel(first)
        recorder.release = None
        for _ in range(40):
            await advance(ulak, 1)
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 1
        assert await states(ulak) == {}


async def test_a_reset_lets_what_waits_try_at_once(make, recorder):
    """Snoozed or to be retried: the clock stands still, so none of them would be due by itself."""
    ulak = make()
    breaking(ulak, recorder, backoff=Backoff(first_seconds=3600))
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(10)])
        await ulak.enqueue("hook.send", key="bank", delay_seconds=60)
        await ulak.enqueue("hook.send", key="shop", slots=3, delay_seconds=60)
        await drain(ulak)
        counts = (await ulak.jobs.counts())["hook.send"]
        assert (counts["deferred"], counts["behind"]) == (8, 4)
        assert await reset(ulak, {"all": True}) == {"reset": 1}
        await drain(ulak)
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 10
        # One of another destination, and one that was never tried: what is scheduled keeps its time.
        assert (await ulak.jobs.counts())["hook.send"]["deferred"] == 2


async def test_a_reset_goes_in_pages(make, recorder, monkeypatch):
    monkeypatch.setattr("ulak.spine.breaker.PAGE", 4)
    ulak = make()
    recorder.on(ulak, "hook.send", breaker=BreakerPolicy(failures=30), backoff=Backoff(first_seconds=3600))
    recorder.answers = [Transient("down")] * 30
    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(30)])
        await drain(ulak)
        assert await states(ulak) == {"shop": "open"}
        assert await reset(ulak, {"all": True}) == {"reset": 1}
        await drain(ulak)
        assert (await ulak.jobs.tally())["hook.send"]["done"] == 30


async def reset(ulak, asked):
    body, sent = json.dumps(asked).encode(), []
    head = [(b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": "/api/breakers/reset", "query_string": b"", "headers": head}

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    await build_app(ulak)(scope, receive, send)
    return json.loads(sent[1]["body"])


async def test_it_outlives_the_process_and_a_trial_that_died_with_it_does_not_block_the_destination(
    sqlite_address, clock, recorder
):
    from tests.flow.conftest import build

    first = build(sqlite_address, clock)
    breaking(first, recorder)
    recorder.answers = [Transient("down")] * 3
    async with first:
        await first.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(3)])
        await drain(first)
        # The trial begins, and its process ends in the middle of it.
        first.loops.breakers.admit("shop", clock.now() + 10_000)
        first.loops.worker._settler.add([])  # as any end does
        await asyncio.wait(first.loops.worker._settler._tasks)
    second = build(sqlite_address, clock)
    breaking(second, recorder)
    async with second:
        assert await states(second) == {"shop": "half-open"}
        for _ in range(60):
            await advance(second, 1)
        assert (await second.jobs.tally())["hook.send"]["done"] == 3
        assert await states(second) == {}


async def test_other_destinations_are_not_touched(make, recorder):
    ulak = make()

    @ulak.handles("hook.send", breaker=POLICY)
    async def send(job):
        if job.key == "down":
            raise Transient("down")
        recorder.jobs.append(job)

    async with ulak:
        await ulak.enqueue_many([NewJob("hook.send", n, key=("down", "up")[n % 2], slots=8) for n in range(40)])
        await drain(ulak)
        assert await states(ulak) == {"down": "open"}
    assert len(recorder.jobs) == 20


async def test_a_change_that_the_store_refused_is_kept_with_the_next_end(make, recorder, monkeypatch):
    ulak = make()
    breaking(ulak, recorder)
    recorder.answers = [Transient("down")] * 3
    async with ulak:
        write, refused = ulak.store.write, []

        async def refuse_once(unit, *args):
            if unit is save_breakers and not refused:
                refused.append(unit)
                raise Unavailable("the store does not answer")
            return await write(unit, *args)

        monkeypatch.setattr(ulak.store, "write", refuse_once)
        await ulak.enqueue_many([NewJob("hook.send", n, key="shop", slots=3) for n in range(3)])
        await drain(ulak)
        await ulak.enqueue("hook.send", key="bank")
        await drain(ulak)
        await asyncio.wait(ulak.loops.worker._settler._tasks or [asyncio.ensure_future(asyncio.sleep(0))])
        rows = await ulak.store.read(load_breakers)
    assert refused
    assert [(row.destination, row.state) for row in rows] == [("shop", "open")]
