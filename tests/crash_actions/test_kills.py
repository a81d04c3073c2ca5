"""A short run of what `make crash` does at length: servers die while plans run, and every step is accounted for."""

from __future__ import annotations

import pytest

from tests.crash_actions.run import BadDayRun, PlansRun
from tests.crash_http.__main__ import place

KILLS = 3


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_every_step_of_every_plan_is_accounted_for_whoever_is_killed(store):
    with place(store) as (address, folder):
        report = await PlansRun(address, folder, 7).go(KILLS)
    assert sum(report.kills.values()) == KILLS
    assert report.asked > KILLS
    assert (report.lost, report.untold, report.unmarked, report.difference) == ([], [], [], 0)
    assert report.dead_letters == 0


@pytest.mark.slow
async def test_on_a_bad_day_of_providers_brokers_and_processes_nothing_is_lost_or_sent_twice_unsaid():
    with place("sqlite") as (address, folder):
        report = await BadDayRun(address, folder, 7).go(KILLS)
    assert (report.broker_restarts, report.dark_spells) == (1, 1)
    assert (report.lost, report.untold, report.unmarked, report.difference) == ([], [], [], 0)
    assert report.success > 0.9  # the shares of a day are those of the long run
