"""A clock that nobody moves: what still ends by itself, what says why it does not, and what a moved clock ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.conftest import HANG_SECONDS, build
from ulak import testing
from ulak.testing import advance, drain

BRIEF = {"stop_grace_seconds": 0.01, "stop_cancel_seconds": 0.01}


async def test_a_stop_keeps_its_limits_though_nobody_moves_the_clock(clock, recorder):
    ulak = build("memory:", clock, worker=BRIEF)
    recorder.release = asyncio.Event()
    recorder.on(ulak, "mail.send")
    async with asyncio.timeout(HANG_SECONDS):
        async with ulak:
            await ulak.enqueue("mail.send")
            await recorder.started.wait()
    assert (ulak.stop_report.cancelled, ulak.stop_report.left) == (1, ())


async def test_drain_gives_up_with_the_jobs_that_still_run_and_what_to_do(clock, recorder, monkeypatch):
    monkeypatch.setattr(testing, "PATIENCE_SECONDS", 0.05)
    ulak = build("memory:", clock, worker=BRIEF)
    recorder.release = asyncio.Event()
    recorder.on(ulak, "mail.send")
    async with ulak:
        job = await ulak.enqueue("mail.send")
        await recorder.started.wait()
        with pytest.raises(TimeoutError, match=rf"1 job\(s\) still run: mail.send {job}; .* advance the clock"):
            await drain(ulak)


async def test_drain_says_so_when_nobody_here_works(clock, recorder, monkeypatch):
    monkeypatch.setattr(testing, "PATIENCE_SECONDS", 0.05)
    ulak = build("memory:", clock, work=False)
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send")
        with pytest.raises(TimeoutError, match=r"nobody here runs.*work=False"):
            await drain(ulak)


async def test_an_offer_with_a_time_ends_when_the_clock_is_advanced_so_far(clock, recorder):
    ulak = build("memory:", clock, spine={"capacity": 1})
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", delay_seconds=3600)
        offer = asyncio.create_task(ulak.offer("mail.send", timeout_seconds=5))
        while not any(ulak.loops.gate._waiting.values()):
            await asyncio.sleep(0)
        await advance(ulak, 4.999)
        assert not offer.done()
        await advance(ulak, 0.001)
        async with asyncio.timeout(HANG_SECONDS):
            assert await offer is None
