"""Workers are killed and stopped at random while tasks run: one result per id, none lost, no process left."""

from __future__ import annotations

import os

from bench.compute_chaos import chaos
from tests.compute.test_deaths import descendants


def test_nothing_is_lost_frozen_or_orphaned():
    before = set(descendants(os.getpid()))
    report = chaos(tasks=4000, kills=30, seed=7)
    assert report.results == report.expected
    assert report.wrong == 0
    assert report.kills >= 10
    assert set(descendants(os.getpid())) <= before
