"""A short run of what `make crash` does a thousand times: servers and workers die under load, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.crash_http.__main__ import place
from tests.crash_http.run import Run

KILLS = 8


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_what_was_answered_with_202_is_delivered_whoever_is_killed(store):
    with place(store) as (address, folder):
        report = await Run(address, folder, seed=7).go(KILLS)
    assert sum(report.kills.values()) == KILLS
    assert report.accepted > KILLS
    assert (report.lost, report.unexplained, report.keys_with_two, report.difference) == ([], [], [], 0)
