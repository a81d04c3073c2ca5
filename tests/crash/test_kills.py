"""The crash runner, in short: processes killed at random moments on each store, counted from outside."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

KILLS = 12


def test_random_kills_lose_nothing_and_explain_every_second_run(killer):
    verdict = killer.run(KILLS)
    assert verdict.violations == {}
    assert killer.kills == KILLS
    assert verdict.ran == verdict.accepted > 100
    assert verdict.explained > 0
