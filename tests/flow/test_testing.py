"""What `ulak.testing` says of a store with much in it."""

from __future__ import annotations

import pytest

from tests.flow.conftest import build
from ulak import NewJob
from ulak.testing import assert_enqueued, drain


async def test_a_waiting_job_is_found_behind_a_thousand_finished_ones(clock, recorder):
    ulak = build("memory:", clock)
    recorder.on(ulak, "mail.send")
    async with ulak:
        await ulak.enqueue("mail.send", "old", delay_seconds=3600)
        clock.advance(0.01)
        await ulak.enqueue_many([NewJob("mail.send", n) for n in range(1001)])
        await drain(ulak)
        await assert_enqueued(ulak, "mail.send", "old")
        with pytest.raises(AssertionError, match="expected 0 live"):
            await assert_enqueued(ulak, "mail.send", times=0)
