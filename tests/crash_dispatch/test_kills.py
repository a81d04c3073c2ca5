"""A short run of what `make crash` does a thousand times: processes die while tasks are opened and answered."""

from __future__ import annotations

import pytest

from tests.crash_dispatch.run import DispatchRun
from tests.crash_http.__main__ import place

KILLS = 4


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_no_task_deadline_or_message_is_lost_whoever_is_killed(store):
    with place(store) as (address, folder):
        report = await DispatchRun(address, folder, seed=7).go(KILLS)
    assert sum(report.kills.values()) == KILLS
    assert report.messages > report.tasks > KILLS
    assert report.is_clean, report
