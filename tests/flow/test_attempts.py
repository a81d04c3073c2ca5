"""How an attempt ends: done, retried, snoozed, throttled, dead, timed out; and answers that can't be kept."""

from __future__ import annotations

import asyncio
import contextlib
import math
from datetime import timedelta
from functools import partial

import pytest

from tests.flow.stores import events_with
from ulak import Backoff, Cancel, Dead, Done, Invalid, NewJob, Permanent, Retry, Snooze, Throttled, Transient
from ulak.clock import to_datetime
from ulak.spine.query import Queries, Query
from ulak.testing import advance, drain

sql = Queries("ulak.spine")

STEADY = Backoff(first_seconds=10, factor=2, cap_seconds=25, jitter=0)


async def test_a_job_runs_once_and_its_result_is_kept(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [{"provider_id": "abc"}]
    async with ulak:
        job = await ulak.enqueue("mail.send", {"to": "ada"})
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.attempt, record.detail) == ("done", 1, {"provider_id": "abc"})
    assert recorder.payloads == [{"to": "ada"}]
    assert [entry.word for entry in record.timeline] == ["accepted", "started", "done"]


async def test_a_failure_is_tried_again_after_a_growing_delay_until_the_attempts_are_used_up(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=4, backoff=STEADY)
    recorder.answers = [OSError("no route"), Transient("busy"), ValueError("odd"), TimeoutError("slow")]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        for pause in (10, 20, 25):  # doubled, then capped
            before = len(recorder.jobs)
            await advance(ulak, pause - 0.001)
            assert len(recorder.jobs) == before
            await advance(ulak, 0.001)
            assert len(recorder.jobs) == before + 1
        record = await ulak.jobs.get(job)
    assert (record.status, record.attempt) == ("dead", 4)
    assert "gave up after 4 attempts: TimeoutError: slow" in record.detail
    assert [entry.word for entry in record.timeline].count("retried") == 3


async def test_a_permanent_failure_is_a_dead_letter_at_once(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Permanent("no such mailbox")]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.attempt, record.detail) == ("dead", 1, "Permanent: no such mailbox")


async def test_a_throttled_attempt_waits_as_long_as_it_was_told(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=STEADY)
    recorder.answers = [Throttled("slow down", retry_after_seconds=90)]
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, 89.999)
        assert len(recorder.jobs) == 1
        await advance(ulak, 0.001)
    assert len(recorder.jobs) == 2


async def test_a_snooze_does_not_count_as_an_attempt_and_an_asked_retry_does(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=2)
    recorder.answers = [Snooze(5), Snooze(5), Retry(5, "not yet"), Done()]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        for _ in range(3):
            await advance(ulak, 5)
        record = await ulak.jobs.get(job)
    assert [each.attempt for each in recorder.jobs] == [1, 1, 1, 2]
    assert (record.status, record.attempt) == ("done", 2)


async def test_a_handler_may_cancel_its_own_job(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Cancel("the order was withdrawn")]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.detail) == ("cancelled", {"reason": "the order was withdrawn"})


async def test_an_attempt_that_takes_too_long_is_ended_and_tried_again(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", timeout_seconds=30, backoff=STEADY)
    recorder.release = asyncio.Event()
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await recorder.started.wait()
        ulak.clock.advance(31)
        while recorder.at_once:
            await asyncio.sleep(0)
        recorder.release.set()
        await advance(ulak, 10)
        record = await ulak.jobs.get(job)
    assert (record.status, record.attempt) == ("done", 2)
    assert ulak.telemetry.counters[("jobs_timed_out", "mail.send", "")] == 1


async def test_the_time_of_every_attempt_is_observed_whoever_ends_it(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", timeout_seconds=30, max_attempts=1)
    recorder.release = asyncio.Event()
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send")] * 3)
        while recorder.at_once < 3:
            await asyncio.sleep(0)
        ulak.clock.advance(31)  # too long for all of them
        while recorder.at_once:
            await asyncio.sleep(0)
        recorder.release.set()
        await ulak.enqueue("mail.send")
        await drain(ulak)
    times = ulak.telemetry.histograms[("job_run_seconds", "mail.send")]
    assert (sum(times.counts), times.total) == (4, 93.0)


class Unwritable:
    """Nothing that JSON knows."""


@pytest.mark.parametrize(
    "answer",
    [
        Unwritable(),
        Done({"when": Unwritable()}),
        Retry("soon"),  # a text is no delay
        Snooze(math.nan, reason=Unwritable()),
        Cancel("\ud800"),
        OSError("cannot open '\udcff.txt'"),
        Permanent("a \x00 in the message"),
    ],
    ids=lambda answer: type(answer).__name__,
)
async def test_an_answer_that_cannot_be_kept_is_that_jobs_failure_and_nobody_elses(make, recorder, answer):
    ulak = make()
    recorder.on(ulak, "mail.send", concurrency=100)
    recorder.answers = [None] * 20 + [answer] + [None] * 20
    async with ulak:
        ids = await ulak.enqueue_many([NewJob("mail.send", number) for number in range(41)])
        await drain(ulak)
        statuses = [(await ulak.jobs.get(job)).status for job in ids]
        running = ulak.loops.worker.running
    assert statuses[:20] + statuses[21:] == ["done"] * 40
    assert statuses[20] in {"dead", "deferred"}
    assert not running


@pytest.mark.parametrize("answer", [Retry(math.inf), Snooze(1e300)], ids=repr)
async def test_a_pause_without_end_is_one_of_ten_years(make, recorder, answer):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [answer]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
        assert record.status == "deferred"
        assert record.due_at == to_datetime(ulak.clock.now()) + timedelta(days=3650)


@pytest.mark.parametrize("seconds", [-5, math.nan])
async def test_a_retry_in_the_past_is_made_at_once(make, recorder, seconds):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Retry(seconds)]
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, 0)
    assert len(recorder.jobs) == 2


@pytest.mark.parametrize("seconds", [-5, 0, math.nan])
async def test_a_handler_that_always_snoozes_runs_ten_times_a_second_at_most(make, recorder, seconds):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Snooze(seconds)] * 50
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        for _ in range(20):
            await advance(ulak, 0.05)
    assert len(recorder.jobs) == 11


async def test_a_unit_in_the_settling_transaction_that_raises_fails_its_own_job_only(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=STEADY)

    def spoil(tx):
        tx.emit("mail.sent", 1, "mail.send")
        raise ValueError("the unit failed")

    recorder.answers = [None, Done(unit=spoil), None]
    async with ulak:
        ids = await ulak.enqueue_many([NewJob("mail.send", number) for number in range(3)])
        await drain(ulak)
        statuses = [(await ulak.jobs.get(job)).status for job in ids]
        events = [event.name for event in await events_with(ulak, "done", 2)]
        assert statuses == ["done", "deferred", "done"]
        assert "mail.sent" not in events
        await advance(ulak, 10)
        assert (await ulak.jobs.get(ids[1])).status == "done"


async def test_a_unit_that_hides_an_error_of_the_database_harms_nobody_else(make, recorder):
    """PostgreSQL refuses what comes after an error; SQLite does not. Either way the others' ends are kept."""
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=STEADY)

    def hide(tx):
        with contextlib.suppress(Exception):
            tx.execute(Query("nowhere", "DELETE FROM nowhere", "DELETE FROM nowhere", ()))

    recorder.answers = [None, Done(unit=hide), None]
    async with ulak:
        ids = await ulak.enqueue_many([NewJob("mail.send", number) for number in range(3)])
        await drain(ulak)
        first, hidden, last = [(await ulak.jobs.get(job)).status for job in ids]
        assert (first, last) == ("done", "done")
        assert hidden in ("done", "deferred")
        answers = await asyncio.gather(ulak.enqueue("sms.send"), ulak.write(hide), return_exceptions=True)
        assert isinstance(answers[0], int)
        assert answers[1] is None or isinstance(answers[1], Invalid)


async def test_what_a_failure_says_may_hold_any_character(make, recorder):
    """Some end a line for Python, though not in JSON: a vendor's error page in cp1252 has \x85."""
    ulak = make()
    said = "a\x85b\u2028c\u2029d\x1ce\r\nf\x00g\ud800"
    recorder.on(ulak, "mail.send", backoff=STEADY)
    recorder.answers = [Transient(said), Transient(said)]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, 10)
        (listed,) = await ulak.jobs.list(kind="mail.send")
        assert listed == await ulak.jobs.get(job)
    reasons = [entry.detail["reason"] for entry in listed.timeline if entry.word == "retried"]
    assert len(reasons) == 2
    assert all("a\x85b\u2028c\u2029d\x1ce\r\nf" in reason for reason in reasons)


async def test_a_handler_whose_end_could_not_be_kept_runs_again_as_an_uncertain_one(make):
    ulak, runs = make(), []

    @ulak.handles("mail.send", backoff=STEADY)
    async def send(job):
        runs.append(job.uncertain)
        await ulak.write(_occupy if len(runs) == 1 else _vacate, job.id)

    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, 10)
        record = await ulak.jobs.get(job)
        tally = {word: number for word, _, number in await ulak.store.read(lambda tx: tx.rows(sql.read_tally))}
    assert runs == [False, True]
    assert (record.status, record.attempt, record.crashes) == ("done", 2, 1)
    words = ["accepted", "started", "uncertain", "retried", "started", "done"]
    assert [entry.word for entry in record.timeline] == words
    assert (tally["uncertain"], tally["retried"], tally["done"]) == (1, 1, 1)


async def test_a_handler_whose_end_could_not_be_kept_is_held_if_its_job_asks_for_that(make):
    ulak, runs = make(), []

    @ulak.handles("mail.send", backoff=STEADY)
    async def send(job):
        runs.append(job.id)
        await ulak.write(_occupy, job.id)

    async with ulak:
        job = await ulak.enqueue("mail.send", on_uncertain="hold")
        await drain(ulak)
        await advance(ulak, 100)
        await ulak.write(_vacate, job)
        record = await ulak.jobs.get(job)
    assert runs == [job]
    assert record.status == "dead"
    assert "waits for a decision" in record.detail


def _occupy(tx, identifier):
    """As if that id had been used before: the end of the job can't be kept."""
    tx.execute(_query(
        "INSERT INTO past (id, kind, outcome, prio, attempt, crashes, accepted_at, due_at, settled_at, payload) "
        f"VALUES ({identifier}, 'other', 'done', 2, 1, 0, 0, 0, 0, 'null')"
    ))  # fmt: skip


def _vacate(tx, identifier):
    tx.execute(_query(f"DELETE FROM past WHERE id = {identifier}"))


def _query(text):
    return Query("test", text, text, ())


async def test_a_unit_in_the_settling_transaction_is_atomic_with_the_end_of_the_job(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Done(unit=lambda tx: tx.emit("mail.sent", 7, "mail.send", {"to": "ada"}))]
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        events = await events_with(ulak, "done")
    assert [(event.name, event.job) for event in events if event.name == "mail.sent"] == [("mail.sent", 7)]


async def test_a_handler_whose_own_task_was_cancelled_has_failed_and_does_not_hang(make, recorder):
    ulak = make()

    @ulak.handles("mail.send", backoff=STEADY)
    async def send(job):
        if job.attempt == 1:
            task = asyncio.ensure_future(asyncio.Event().wait())
            task.cancel()
            await task

    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "deferred"
        await advance(ulak, 10)
        assert (await ulak.jobs.get(job)).status == "done"


class Panic(BaseException):
    """What a library that is written in Rust raises."""


@pytest.mark.parametrize("error", [SystemExit(2), Panic("index out of bounds")], ids=repr)
async def test_an_error_that_would_end_the_process_is_a_failed_attempt(make, recorder, error):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=2, backoff=STEADY)
    recorder.answers = [error, None]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        assert (await ulak.jobs.get(job)).status == "deferred"
        await advance(ulak, 10)
        assert (await ulak.jobs.get(job)).status == "done"


async def test_a_snooze_without_seconds_is_a_dead_letter_and_not_stuck(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Snooze(None)]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, "give seconds as a number" in record.detail) == ("dead", True)


async def test_a_retry_is_a_timer_and_its_lateness_is_measured(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Retry(5)]
    async with ulak:
        await ulak.enqueue("mail.send")
        await drain(ulak)
        await advance(ulak, 5)
        lateness = ulak.telemetry.times("mail.send").lateness
    assert len(recorder.jobs) == 2
    assert sum(lateness.counts) == 1


async def test_a_handler_may_declare_its_job_dead_with_a_code(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [Dead("no such mailbox", "permanent", "SMTP_550"), Permanent("gone", code="HTTP_410")]
    async with ulak:
        jobs = [await ulak.enqueue("mail.send") for _ in range(2)]
        await drain(ulak)
        records = [await ulak.jobs.get(job) for job in jobs]
    assert {(record.status, record.detail, record.code) for record in records} == {
        ("dead", "no such mailbox", "SMTP_550"),
        ("dead", "Permanent: gone", "HTTP_410"),
    }
    assert records[0].timeline[-1].detail == {"cause": "no such mailbox", "code": "SMTP_550"}


async def test_the_code_of_the_last_failure_is_kept_when_the_attempts_are_used_up(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=1)
    recorder.answers = [Transient("slow", code="SMTP_TIMEOUT")]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert (record.status, record.code) == ("dead", "SMTP_TIMEOUT")


@pytest.mark.parametrize(
    "answer",
    [Dead(7), Dead("no", "sad"), Dead("no", code="two words"), Dead("no", then=print), Done(then=("odd", 1))],
    ids=["cause", "class", "code", "then without an item", "then that is no function"],
)
async def test_an_end_that_is_not_well_formed_is_a_permanent_failure(make, recorder, answer):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.answers = [answer]
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await drain(ulak)
        record = await ulak.jobs.get(job)
    assert record.status == "dead"
    assert "the handler answered" in record.detail


@pytest.mark.parametrize(("make_end", "status"), [(Done, "done"), (partial(Dead, "no"), "dead")], ids=["done", "dead"])
async def test_a_then_that_raises_fails_its_own_job_which_is_tried_again(make, recorder, make_end, status):
    ulak = make()
    recorder.on(ulak, "mail.send", backoff=STEADY)

    def follow(tx, items):
        if "bad" in items:
            raise ValueError("not now")

    recorder.answers = [make_end(then=(follow, "good")), make_end(then=(follow, "bad"))]
    async with ulak:
        jobs = await ulak.enqueue_many([NewJob("mail.send"), NewJob("mail.send")])
        await drain(ulak)
        records = [await ulak.jobs.get(job) for job in jobs]
    assert {record.status for record in records} == {"deferred", status}
