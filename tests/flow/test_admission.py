"""Bounded, always: put waits, offer refuses, offer with a time waits so long; and nobody who waits is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from ulak import Backoff, BreakerPolicy, NewJob, Refused, Transient, Unavailable
from ulak.testing import drain


async def stand(ulak, number):
    """Wait until so many callers stand in line."""
    while sum(map(len, ulak.loops.gate._waiting.values())) < number:
        await asyncio.sleep(0)


@pytest.fixture
def ulak(make, recorder):
    """Capacity for three; the handler holds on to what it has until it is released."""
    ulak = make()
    recorder.release = asyncio.Event()
    recorder.on(ulak, "mail.send", capacity=3)
    return ulak


async def fill(ulak, number=3):
    return await ulak.enqueue_many([NewJob("mail.send", f"first-{n}") for n in range(number)])


async def test_offer_refuses_at_the_bound_and_takes_again_when_there_is_capacity(ulak, recorder):
    async with ulak:
        await fill(ulak)
        assert await ulak.offer("mail.send", 4) is None
        recorder.release.set()
        await drain(ulak)
        assert await ulak.offer("mail.send", 5) is not None
        await drain(ulak)
    assert 4 not in recorder.payloads
    assert 5 in recorder.payloads
    assert ulak.telemetry.counters[("jobs_refused", "mail.send", "full")] == 1


async def test_put_waits_for_capacity_for_as_long_as_it_takes(ulak, recorder):
    async with ulak:
        await fill(ulak)
        waiting = asyncio.create_task(ulak.put(NewJob("mail.send", 4)))
        await stand(ulak, 1)
        ulak.clock.advance(3600)
        assert not waiting.done()
        recorder.release.set()
        assert len(await waiting) == 1
        await drain(ulak)
    assert recorder.payloads[-1] == 4


async def test_offer_with_a_time_waits_so_long_and_no_longer(ulak, recorder):
    async with ulak:
        await fill(ulak)
        early = asyncio.create_task(ulak.offer("mail.send", "early", timeout_seconds=5))
        late = asyncio.create_task(ulak.offer("mail.send", "late", timeout_seconds=60))
        await stand(ulak, 2)
        ulak.clock.advance(5)
        assert await early is None
        recorder.release.set()
        assert await late is not None
        await drain(ulak)
    assert recorder.payloads[-1] == "late"


@pytest.mark.parametrize(("policy", "seconds"), [("reject", 0), ("wait", 5)])
async def test_enqueue_follows_the_policy_of_its_kind(make, recorder, policy, seconds):
    ulak = make()
    recorder.release = asyncio.Event()
    recorder.on(ulak, "mail.send", capacity=1, admission=policy, wait_seconds=5)
    async with ulak:
        await ulak.enqueue("mail.send", 1)
        second = asyncio.create_task(ulak.enqueue("mail.send", 2))
        if seconds:
            await stand(ulak, 1)
            ulak.clock.advance(seconds)
        with pytest.raises(Refused, match="its bound of 1") as refusal:
            await second
        assert refusal.value.retry_after_seconds
        recorder.release.set()


async def test_who_waits_longest_goes_first(ulak, recorder):
    async with ulak:
        await fill(ulak)
        waiting = []
        for number in range(20):
            waiting.append(asyncio.create_task(ulak.put(NewJob("mail.send", number))))
            await stand(ulak, number + 1)
        recorder.release.set()
        await asyncio.gather(*waiting)
        await drain(ulak)
    # As many as there is capacity for go at once and arrive together; beyond that nobody overtakes.
    order = recorder.payloads[3:]
    assert all(abs(place - number) < 3 for place, number in enumerate(order)), order


async def test_who_was_woken_in_vain_goes_back_to_its_old_place(ulak, recorder):
    async with ulak:
        await fill(ulak)
        gate = ulak.loops.gate
        waiting = []
        for number in range(3):
            waiting.append(asyncio.create_task(ulak.put(NewJob("mail.send", number))))
            await stand(ulak, number + 1)
        before = [waiter.ticket for waiter in gate._waiting["mail.send"]]
        for waiter in list(gate._waiting["mail.send"]):
            gate._waiting["mail.send"].remove(waiter)
            waiter.event.set()  # a wake-up for capacity that somebody else has taken
        await stand(ulak, 3)
        assert [waiter.ticket for waiter in gate._waiting["mail.send"]] == before
        recorder.release.set()
        await asyncio.gather(*waiting)


async def test_one_who_gives_up_does_not_take_the_next_ones_turn_along(ulak, recorder):
    async with ulak:
        await fill(ulak)
        first = asyncio.create_task(ulak.put(NewJob("mail.send", "first")))
        await stand(ulak, 1)
        second = asyncio.create_task(ulak.put(NewJob("mail.send", "second")))
        await stand(ulak, 2)
        gate = ulak.loops.gate
        waiter = gate._waiting["mail.send"][0]

        def cancel_when_woken():
            first.cancel()

        # Capacity comes, the first is told, and is cancelled before it can use it.
        waiter.event.set, told = (lambda: (type(waiter.event).set(waiter.event), cancel_when_woken())), waiter
        recorder.release.set()
        await second
        assert told is waiter
        with pytest.raises(asyncio.CancelledError):
            await first
        await drain(ulak)
    assert "second" in recorder.payloads


async def test_one_whose_time_ran_out_at_the_head_lets_the_next_one_go(make, recorder):
    """The head needs three places, there is one: when it gives up, the one behind it must be told."""
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=3)
    async with ulak:
        jobs = await fill(ulak)
        head = asyncio.create_task(ulak.loops.gate.offer(rows(ulak, 3), 5))
        await stand(ulak, 1)
        behind = asyncio.create_task(ulak.put(NewJob("mail.send", "small")))
        await stand(ulak, 2)
        await ulak.jobs.cancel(jobs[0])
        for _ in range(20):
            await asyncio.sleep(0)
        ulak.clock.advance(5)
        assert await head is None
        assert len(await behind) == 1


def rows(ulak, number):
    from ulak.spine.validate import to_rows

    return to_rows([NewJob("mail.send")] * number, ulak.store.ids, ulak.store.clock.now())


async def test_capacity_that_comes_between_the_refusal_and_the_line_is_not_missed(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send", capacity=1, concurrency=1)
    async with ulak:
        await asyncio.gather(*(ulak.put(NewJob("mail.send", number)) for number in range(300)))
        await drain(ulak)
    assert sorted(recorder.payloads) == list(range(300))


async def test_the_bound_holds_against_two_thousand_producers_at_once(make, recorder):
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=100)
    async with ulak:
        answers = await asyncio.gather(*(ulak.offer("mail.send", number) for number in range(2000)))
        counts = await ulak.jobs.counts()
    accepted = [answer for answer in answers if answer is not None]
    assert len(accepted) == counts["mail.send"]["ready"]
    assert len(accepted) <= 100
    assert len(accepted) >= 80  # on a shared store some of the capacity may be promised to others


async def test_a_batch_that_can_never_fit_is_told_so_and_a_mixed_one_is_not_miscounted(make, recorder):
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=3)
    recorder.on(ulak, "sms.send", capacity=100)
    async with ulak:
        with pytest.raises(Refused, match="send fewer"):
            await ulak.enqueue_many([NewJob("mail.send")] * 4)
        await fill(ulak)
        mixed = asyncio.create_task(ulak.enqueue_many([NewJob("sms.send")] * 50 + [NewJob("mail.send")]))
        await stand(ulak, 1)
        (job, *_) = await ulak.jobs.list(kind="mail.send")
        await ulak.jobs.cancel(job.id)
        assert len(await mixed) == 51


async def test_nothing_of_a_batch_is_kept_when_part_of_it_is_refused(make, recorder):
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=3)
    recorder.on(ulak, "sms.send", admission="reject")
    async with ulak:
        await fill(ulak)
        with pytest.raises(Refused):
            await ulak.enqueue_many([NewJob("sms.send"), NewJob("mail.send")])
        assert "sms.send" not in await ulak.jobs.counts()
        assert ulak.store.capacity.free("sms.send") > 100


async def test_who_waits_is_told_when_ulak_stops(ulak, recorder):
    async with ulak:
        await fill(ulak)
        waiting = asyncio.create_task(ulak.put(NewJob("mail.send", 4)))
        await stand(ulak, 1)
        recorder.release.set()
        ulak.loops.gate.close()
        with pytest.raises(Unavailable, match="stopping"):
            await waiting


async def test_work_that_is_owed_is_taken_over_the_bound(make, recorder):
    """A continuation and a redrive were accepted before: the bound holds back only what is new."""
    ulak = make()
    recorder.on(ulak, "mail.send", capacity=100)
    recorder.on(ulak, "mail.log", capacity=1)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail.send", continuation="mail.log") for _ in range(20)])
        await drain(ulak)
        assert (await ulak.jobs.tally())["mail.log"]["done"] == 20


async def test_a_batch_that_never_fits_into_the_share_of_its_key_is_told_so(make, recorder):
    ulak = make(spine={"capacity": 9}, work=False)
    recorder.on(ulak, "hook.send")
    async with ulak:
        with pytest.raises(Refused, match=r"into the share of shop, half of the bound of hook\.send; send fewer"):
            await ulak.enqueue_many([NewJob("hook.send", key="shop")] * 8)
        assert len(await ulak.enqueue_many([NewJob("hook.send", key="shop")] * 5)) == 5


@pytest.fixture
def crowded(make, recorder):
    """Five jobs of `shop` are its share of nine; what runs is held until it is released."""
    ulak = make(spine={"capacity": 9})
    recorder.release = asyncio.Event()
    recorder.on(ulak, "hook.send", breaker=BreakerPolicy(failures=1), backoff=Backoff(first_seconds=3600))
    return ulak


async def crowd(ulak, number=5):
    for _ in range(number):
        await ulak.enqueue("hook.send", "first", key="shop")


async def test_one_who_waits_for_a_full_destination_holds_up_nobody_else(crowded, recorder):
    ulak = crowded
    async with ulak:
        await crowd(ulak)
        assert await ulak.offer("hook.send", key="shop") is None
        assert ulak.telemetry.counters[("jobs_refused", "hook.send", "share")] == 1
        waiting = asyncio.create_task(ulak.put(NewJob("hook.send", "late", key="shop")))
        await stand(ulak, 1)
        assert await ulak.offer("hook.send", "other", key="bank") is not None
        assert await ulak.offer("hook.send", "none") is not None
        assert not waiting.done()
        recorder.release.set()
        assert len(await waiting) == 1
        await drain(ulak)
    assert recorder.payloads[-1] == "late"


async def test_the_refusal_at_a_full_destination_names_it(make, recorder):
    ulak = make(spine={"capacity": 9}, work=False)
    recorder.on(ulak, "hook.send", admission="reject")
    async with ulak:
        await crowd(ulak)
        with pytest.raises(Refused, match="shop has its share of hook") as refusal:
            await ulak.enqueue("hook.send", key="shop")
        assert refusal.value.retry_after_seconds


async def test_at_a_full_destination_that_is_down_nobody_waits(crowded, recorder):
    ulak = crowded
    recorder.answers = [Transient("down")]
    recorder.release.set()
    async with ulak:
        await crowd(ulak, 1)
        await drain(ulak)
        assert [breaker.state for breaker in ulak.loops.breakers.stopping()] == ["open"]
        await crowd(ulak, 4)
        assert await asyncio.wait_for(ulak.offer("hook.send", key="shop", timeout_seconds=60), 5) is None
        assert await ulak.offer("hook.send", key="bank") is not None
        await drain(ulak)


async def test_put_waits_also_at_a_full_destination_that_is_down(crowded, recorder):
    ulak = crowded
    recorder.answers = [Transient("down")]
    recorder.release.set()
    async with ulak:
        await crowd(ulak, 1)
        await drain(ulak)
        await crowd(ulak, 4)
        late = asyncio.create_task(ulak.put(NewJob("hook.send", "late", key="shop")))
        await stand(ulak, 1)
        (job, *_) = await ulak.jobs.list(kind="hook.send", status="behind")
        await ulak.jobs.cancel(job.id)
        assert len(await late) == 1


async def test_those_in_line_for_a_destination_that_goes_down_are_told_and_nobody_joins_them(crowded, recorder):
    """One who puts, and so stays in line, keeps nobody else there."""
    ulak = crowded
    recorder.answers = [Transient("down")]
    async with ulak:
        await crowd(ulak)
        stays = asyncio.create_task(ulak.put(NewJob("hook.send", key="shop")))
        await stand(ulak, 1)
        waiting = [asyncio.create_task(ulak.offer("hook.send", key="shop", timeout_seconds=60)) for _ in range(3)]
        await stand(ulak, 4)
        recorder.release.set()
        await drain(ulak)
        assert [breaker.state for breaker in ulak.loops.breakers.stopping()] == ["open"]
        ulak.loops.gate.look()
        assert await asyncio.gather(*waiting) == [None] * 3
        await stand(ulak, 1)
        assert await ulak.offer("hook.send", key="shop", timeout_seconds=60) is None
        assert not stays.done()
        stays.cancel()


async def test_those_who_wait_for_a_full_destination_go_one_after_another(crowded, recorder):
    ulak = crowded
    async with ulak:
        await crowd(ulak)
        waiting = []
        for number in range(10):
            waiting.append(asyncio.create_task(ulak.put(NewJob("hook.send", number, key="shop"))))
            await stand(ulak, number + 1)
        recorder.release.set()
        await asyncio.wait_for(asyncio.gather(*waiting), 20)
        await drain(ulak)
    assert recorder.payloads[5:] == list(range(10))
