"""Dead letters: browse, edit, drop, and send again: one, by filter, at a rate, after a dry run."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.stores import claim
from ulak import Invalid, NewJob, NotFound, Permanent
from ulak.spine.outcome import Dead, Done, Settlement
from ulak.spine.units.dead_letters import Filter
from ulak.spine.units.settle import SETTLE
from ulak.testing import advance, drain


@pytest.fixture
def ulak(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=1)
    recorder.on(ulak, "sms.send", max_attempts=1)
    return ulak


async def bury(ulak, recorder, *jobs, cause="no such mailbox"):
    recorder.answers = [Permanent(cause)] * len(jobs)
    ids = await ulak.enqueue_many(jobs)
    await drain(ulak)
    recorder.jobs.clear()
    return ids


async def test_a_dead_letter_can_be_browsed_edited_and_sent_again(ulak, recorder):
    async with ulak:
        (job,) = await bury(ulak, recorder, NewJob("mail.send", {"to": "adda"}))
        (dead,) = await ulak.jobs.list(status="dead")
        assert (dead.id, dead.detail, dead.payload) == (job, "Permanent: no such mailbox", {"to": "adda"})
        await ulak.jobs.edit(job, {"to": "ada"})
        assert await ulak.jobs.redrive([job]) == [job]
        await drain(ulak)
        record = await ulak.jobs.get(job)
        assert await ulak.jobs.list(status="dead") == []
        assert await ulak.jobs.redrive([job]) == []
    assert recorder.payloads == [{"to": "ada"}]
    assert recorder.jobs[0].attempt == 1  # fresh attempts
    assert recorder.jobs[0].epoch == 2  # but never an old epoch
    assert [entry.word for entry in record.timeline if entry.word in {"redriven", "done"}] == ["redriven", "done"]


async def test_a_dead_letter_can_be_dropped_for_good(ulak, recorder):
    async with ulak:
        (job,) = await bury(ulak, recorder, NewJob("mail.send"))
        await ulak.jobs.drop(job)
        with pytest.raises(NotFound):
            await ulak.jobs.get(job)
        with pytest.raises(NotFound):
            await ulak.jobs.drop(job)
        with pytest.raises(NotFound):
            await ulak.jobs.edit(job, {})


async def test_an_edit_that_is_not_json_is_refused_and_the_letter_stays(ulak, recorder):
    async with ulak:
        (job,) = await bury(ulak, recorder, NewJob("mail.send", 1))
        with pytest.raises((Invalid, TypeError)):
            await ulak.jobs.edit(job, object())
        assert (await ulak.jobs.get(job)).payload == 1


async def test_a_filter_by_words_takes_them_as_they_are(ulak, recorder):
    async with ulak:
        await bury(ulak, recorder, NewJob("mail.send", 1))
        (full,) = await bury(ulak, recorder, NewJob("sms.send", 2), cause="100% full, see C:\\logs_1")
        for part in ("0%", "s_1", "C:\\LOGS"):
            assert await ulak.jobs.find_dead(Filter(contains=part)) == [full]
        assert await ulak.jobs.find_dead(Filter(contains="n_ such")) == []


async def test_a_filter_finds_them_first_and_sends_exactly_those_again(ulak, recorder):
    async with ulak:
        boxes = await bury(ulak, recorder, NewJob("mail.send", 1), NewJob("mail.send", 2))
        await bury(ulak, recorder, NewJob("sms.send", 3))
        quota = await bury(ulak, recorder, NewJob("mail.send", 4), cause="over quota")
        assert await ulak.jobs.find_dead(Filter(kind="mail.send", contains="mailbox")) == boxes  # the dry run
        assert await ulak.jobs.find_dead(Filter(contains="quota")) == quota
        assert await ulak.jobs.find_dead(Filter(error_class="poison")) == []
        sent = [job async for job in ulak.jobs.redrive_all(Filter(kind="mail.send", contains="mailbox"))]
        await drain(ulak)
        assert sent == boxes
        assert len(await ulak.jobs.list(status="dead")) == 2
    assert recorder.payloads == [1, 2]


async def test_they_are_sent_again_at_a_rate(ulak, recorder):
    async with ulak:
        ids = await bury(ulak, recorder, *[NewJob("mail.send", number) for number in range(4)])
        sent = []

        async def send_again():
            sent.extend([job async for job in ulak.jobs.redrive_all(Filter(), rate_per_second=2)])

        async def went(number):
            while len(recorder.jobs) < number:
                await asyncio.sleep(0)

        task = asyncio.create_task(send_again())
        for number in range(1, 5):
            await went(number)
            await drain(ulak)
            assert len(recorder.jobs) == number
            while not ulak.clock._sleepers or not any(
                due <= ulak.clock.monotonic() + 0.5 for due, _ in ulak.clock._sleepers
            ):
                await asyncio.sleep(0)
            await advance(ulak, 0.5)
        await task
    assert sent == ids


async def test_a_redriven_key_keeps_its_order_and_its_slot_limit(ulak, recorder):
    async with ulak:
        dead = await bury(ulak, recorder, *[NewJob("mail.send", number, key="ada") for number in range(3)])
        recorder.release = asyncio.Event()
        await ulak.enqueue("mail.send", "now", key="ada")
        await recorder.started.wait()
        assert await ulak.jobs.redrive(dead) == dead
        assert [(await ulak.jobs.get(job)).status for job in dead] == ["behind"] * 3
        recorder.release.set()
        await drain(ulak)
    assert recorder.payloads == ["now", 0, 1, 2]
    assert recorder.most_at_once == 1


async def test_a_redrive_does_not_break_a_unique_key_that_is_taken_again(ulak, recorder):
    async with ulak:
        (old,) = await bury(ulak, recorder, NewJob("mail.send", "old", unique_key="order-1"))
        holder = await ulak.enqueue("mail.send", "new", unique_key="order-1", delay_seconds=60)
        assert await ulak.jobs.redrive([old]) == []
        assert (await ulak.jobs.get(old)).status == "dead"
        await ulak.jobs.cancel(holder)
        assert await ulak.jobs.redrive([old]) == [old]
        await drain(ulak)
    assert recorder.payloads == ["old"]


async def test_two_dead_letters_with_one_unique_key_go_back_one_at_a_time(ulak, recorder):
    async with ulak:
        dead = await bury(ulak, recorder, NewJob("mail.send", 1, unique_key="order-1"))
        dead += await bury(ulak, recorder, NewJob("mail.send", 2, unique_key="order-1"))
        assert await ulak.jobs.redrive(dead) == dead[:1]
        await drain(ulak)
        assert await ulak.jobs.redrive(dead) == dead[1:]


async def test_an_expiry_that_passed_meanwhile_does_not_stop_a_redrive(make, recorder):
    from ulak.clock import to_datetime

    ulak = make()
    recorder.on(ulak, "mail.send", max_attempts=1)
    async with ulak:
        expires = to_datetime(ulak.clock.now() + 60_000)
        (dead,) = await bury(ulak, recorder, NewJob("mail.send", 1, expires_at=expires))
        await advance(ulak, 3600)
        await ulak.jobs.redrive([dead])
        await drain(ulak)
    assert recorder.payloads == [1]


async def test_a_result_from_before_the_death_is_refused_after_the_redrive(make):
    """The epoch goes on counting over death and redrive: a worker that slept through both can't finish the new life."""
    ulak = make(work=False)
    async with ulak:
        store = ulak.store
        job = await ulak.enqueue("mail.send")
        (stale,) = (await claim(ulak, "mail.send")).leases
        await store.submit(SETTLE, [Settlement(job, stale.epoch, "mail.send", None, 1, Dead("no"))])
        await ulak.jobs.redrive([job])
        (fresh,) = (await claim(ulak, "mail.send")).leases
        assert fresh.epoch > stale.epoch
        assert await store.submit(SETTLE, [Settlement(job, stale.epoch, "mail.send", None, 1, Done())]) == set()
        assert (await ulak.jobs.get(job)).status == "running"
        kept = await store.submit(SETTLE, [Settlement(job, fresh.epoch, "mail.send", None, 1, Done())])
        assert kept == {(job, fresh.epoch)}


async def test_the_timeline_keeps_the_life_before_a_redrive(ulak, recorder):
    async with ulak:
        (job,) = await bury(ulak, recorder, NewJob("mail.send"))
        await ulak.jobs.redrive([job])
        await drain(ulak)
        record = await ulak.jobs.get(job)
    words = [(entry.word, entry.attempt) for entry in record.timeline]
    assert words == [
        ("accepted", 0),
        ("started", 1),
        ("dead", 1),
        ("redriven", 0),
        ("started", 1),
        ("done", 1),
    ]
    assert record.timeline[2].detail == {"cause": "Permanent: no such mailbox"}


@pytest.mark.parametrize("identifier", ["910011660083658752", None, 1.5, [1]], ids=repr)
async def test_what_is_no_id_is_refused_by_every_verb(ulak, identifier):
    async with ulak:
        jobs = ulak.jobs
        for verb in (jobs.get, jobs.cancel, jobs.drop, lambda one: jobs.edit(one, {}), lambda one: jobs.redrive([one])):
            with pytest.raises(Invalid, match="is not a job's id"):
                await verb(identifier)


async def test_an_id_beyond_all_ids_is_not_found(ulak):
    async with ulak:
        with pytest.raises(NotFound):
            await ulak.jobs.get(1 << 70)
        with pytest.raises(NotFound):
            await ulak.jobs.redrive([1 << 70])


@pytest.mark.parametrize("payload", [object(), "\ud800", float("nan"), "x" * 1_048_576], ids=lambda one: str(one)[:9])
async def test_a_new_payload_has_the_bounds_of_the_first_one(ulak, recorder, payload):
    async with ulak:
        (job,) = await bury(ulak, recorder, NewJob("mail.send", 1))
        with pytest.raises(Invalid, match="the payload of dead letter"):
            await ulak.jobs.edit(job, payload)
        assert (await ulak.jobs.get(job)).payload == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda jobs: jobs.list(limit="5"),
        lambda jobs: jobs.list(before="x"),
        lambda jobs: jobs.list(kind="\ud800"),
        lambda jobs: jobs.find_dead(Filter(), limit=-1),
        lambda jobs: jobs.find_dead(Filter(contains="a\x00")),
        lambda jobs: jobs.events(after=None),
        lambda jobs: jobs.events(limit=0),
        lambda jobs: anext(jobs.redrive_all(Filter(), rate_per_second=-1)),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(ulak, ask):
    async with ulak:
        with pytest.raises(Invalid):
            await ask(ulak.jobs)
