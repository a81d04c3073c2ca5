"""A job that kills its process is found and put aside, and its neighbours are not blamed."""

from __future__ import annotations

import os

import pytest

from tests.crash.child import EXIT_OF_POISON
from tests.crash.wire import Life

pytestmark = pytest.mark.slow

DEATHS = 3
NEIGHBOURS = (("poison", 1), ("plain", 40), ("keyed", 10), ("thread", 10))
MAX_LIVES = 12


def test_a_poison_job_is_put_aside_and_all_its_neighbours_are_done(killer):
    settings = {"spine.poison_deaths": DEATHS}
    first = killer.nursery.start(Life(killer.address, 100, until="drained", jobs=NEIGHBOURS, settings=settings))
    died = [killer.nursery.finish(first)]
    while died[-1] != 0 and len(died) < MAX_LIVES:
        child = killer.nursery.start(Life(killer.address, 100 + len(died), until="drained", settings=settings))
        died.append(killer.nursery.finish(child))
    assert [os.waitstatus_to_exitcode(status) for status in died] == [EXIT_OF_POISON] * DEATHS + [0]
    verdict = killer.drain()
    assert verdict.violations == {}
    assert verdict.accepted - verdict.ran == 1
