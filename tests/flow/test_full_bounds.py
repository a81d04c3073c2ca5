"""A full bound is told from when it fills until it has drained, however seldom somebody meets it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ulak import NewJob


async def upkeep(ulak):
    """A look at what is full, as the loops take one about twice a second."""
    await ulak.store.maintain()
    await ulak.loops.gate.look_at_full()


def told(logs):
    return [(line["event"], line["bound"]) for line in logs if line["event"].startswith("bound_")]


@pytest.fixture
def logs():
    with capture_logs() as lines:
        yield lines


async def test_a_bound_that_nobody_meets_for_a_minute_is_full_until_a_job_leaves(make, recorder, clock, logs):
    ulak = make(work=False)
    recorder.on(ulak, "mail.send", capacity=3)
    async with ulak:
        jobs = await ulak.enqueue_many([NewJob("mail.send")] * 3)
        for _ in range(3):
            assert await ulak.offer("mail.send") is None
            clock.advance(60)
            await upkeep(ulak)
        (reason,) = ulak.loops.gate.full.reasons()
        assert "mail.send has reached its bound of 3 active jobs" in reason
        await ulak.jobs.cancel(jobs[0])
        clock.advance(60)
        await upkeep(ulak)
        assert ulak.loops.gate.full.reasons() == []
    assert told(logs) == [("bound_full", "active"), ("bound_drained", "active")]


async def test_a_share_that_nobody_meets_for_a_minute_is_used_up_until_a_job_leaves(make, recorder, clock, logs):
    ulak = make(spine={"capacity": 9}, work=False)
    recorder.on(ulak, "hook.send")
    async with ulak:
        jobs = [await ulak.enqueue("hook.send", key="shop") for _ in range(5)]
        for _ in range(3):
            assert await ulak.offer("hook.send", key="shop") is None
            clock.advance(60)
            await upkeep(ulak)
        (reason,) = ulak.loops.gate.full.reasons()
        assert "1 key of hook.send with a full share" in reason
        await ulak.jobs.cancel(jobs[-1])
        clock.advance(60)
        await upkeep(ulak)
        assert ulak.loops.gate.full.reasons() == []
    assert told(logs) == [("bound_full", "share"), ("bound_drained", "share")]
