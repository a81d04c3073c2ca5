"""Part of the work, and steering it live: which kinds a process serves, and how many of each at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import build
from ulak import Invalid, NewJob
from ulak.spine.loops.loops import STEERING_SECONDS
from ulak.spine.store import WriterQueue
from ulak.testing import drain


async def test_a_process_serves_only_the_kinds_that_it_is_for(make, recorder):
    ulak = make(work=["mail.*"])
    recorder.on(ulak, "mail.send")
    recorder.on(ulak, "sms.send")
    async with ulak:
        mail, sms = await ulak.enqueue("mail.send", 1), await ulak.enqueue("sms.send", 2)
        await drain(ulak)
        assert (await ulak.jobs.get(mail)).status == "done"
        assert (await ulak.jobs.get(sms)).status == "ready"
        served = {state.kind for state in await ulak.kinds.list() if state.served}
    assert served == {"mail.send"}
    assert recorder.payloads == [1]


@pytest.mark.parametrize("work", ["mail.*", [7], [""]])
def test_kinds_to_serve_are_a_list_of_patterns(make, work):
    with pytest.raises(Invalid, match="not a list of kinds"):
        make(work=work)


async def test_a_paused_kind_is_accepted_and_waits(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    recorder.on(ulak, "sms.send")
    async with ulak:
        state = await ulak.kinds.pause("mail.send", who="ada")
        assert (state.paused, state.declared) == (True, 100)
        await ulak.enqueue_many([NewJob("mail.send", "first"), NewJob("sms.send", "second")])
        await drain(ulak)
        assert recorder.payloads == ["second"]
        await ulak.kinds.resume("mail.send", who="ada")
        await drain(ulak)
        lines = [(line.who, line.verb, line.object) for line in await ulak.audit.list()]
    assert recorder.payloads == ["second", "first"]
    assert lines == [("ada", "kinds.resume", "mail.send"), ("ada", "kinds.pause", "mail.send")]


async def test_what_does_not_change_is_not_told(make, recorder):
    ulak = make()
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.kinds.resume("mail.send")
        await ulak.kinds.set("mail.send", concurrency=None)
        assert await ulak.audit.list() == []


async def test_a_kind_runs_as_many_at_once_as_people_say(make):
    ulak, running, most, gate = make(), 0, 0, asyncio.Event()

    @ulak.handles("mail.send", concurrency=10)
    async def send(_):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await gate.wait()
        running -= 1

    async with ulak:
        state = await ulak.kinds.set("mail.send", concurrency=3)
        assert (state.concurrency, state.declared) == (3, 10)
        await ulak.enqueue_many([NewJob("mail.send") for _ in range(20)])
        while most < 3:
            await asyncio.sleep(0.001)
        gate.set()
        await drain(ulak)
        assert most == 3
        with pytest.raises(Invalid, match="pause the kind"):
            await ulak.kinds.set("mail.send", concurrency=0)


async def test_a_control_waits_for_the_claim_that_was_made_before_it(make, recorder, monkeypatch):
    """On PostgreSQL a claim has a connection of its own, and may come after the commit of the control."""
    ulak, asked, let_go = make(), asyncio.Event(), asyncio.Event()
    recorder.on(ulak, "mail.send", concurrency=10)
    recorder.release = asyncio.Event()
    async with ulak:
        submit = ulak.store.submit

        async def held_up(verb, value):
            if verb.line is WriterQueue.CLAIM:
                asked.set()
                await let_go.wait()
            return await submit(verb, value)

        monkeypatch.setattr(ulak.store, "submit", held_up)
        ulak.loops.worker.claimer.note_all()
        await asked.wait()
        setting = asyncio.create_task(ulak.kinds.set("mail.send", concurrency=3))
        while not ulak.loops.steering.controls:
            await asyncio.sleep(0.001)
        for _ in range(20):
            await ulak.kinds.list()  # all that is left to do for `set`, but for the claim
        assert not setting.done()
        let_go.set()
        await setting
        await ulak.enqueue_many([NewJob("mail.send") for _ in range(20)])
        await recorder.until(3)
        recorder.release.set()
        await drain(ulak)
    assert recorder.most_at_once == 3


async def test_a_control_outlives_the_process(address, clock, recorder):
    if address == "memory:":
        pytest.skip("memory: is not kept")
    async with build(address, clock) as ulak:
        await ulak.kinds.set("mail.send", paused=True, concurrency=2)
    ulak = build(address, clock)
    recorder.on(ulak, "mail.send")
    async with ulak:
        job = await ulak.enqueue("mail.send")
        clock.advance(2)
        (state,) = [one for one in await ulak.kinds.list() if one.kind == "mail.send"]
        assert (state.paused, state.concurrency) == (True, 2)
        assert (await ulak.jobs.get(job)).status == "ready"


@pytest.mark.postgres
async def test_other_processes_follow_within_two_seconds(address, clock, recorder):
    if not address.startswith("postgresql"):
        pytest.skip("one process works on a file")
    pair = [build(address, clock) for _ in range(2)]
    for ulak in pair:
        recorder.on(ulak, "mail.send")
    async with pair[0], pair[1]:
        await pair[0].kinds.pause("mail.send")
        while not pair[1].loops.steering.controls:
            clock.advance(STEERING_SECONDS)
            await asyncio.sleep(0.001)
        await pair[1].enqueue("mail.send", 1)
        await pair[0].kinds.resume("mail.send")
        while not recorder.payloads:
            clock.advance(STEERING_SECONDS)
            await asyncio.sleep(0.001)
