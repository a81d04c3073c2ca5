"""Fixtures that any test may want. What belongs to one room or store is in that folder's conftest."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from ulak.clock import ManualClock

# The same examples on every run, and no verdict by the time that one took: a busy machine must not fail a test.
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "house", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


# `ULAK_BROWSER=required make test` is for the tests. It is no setting, and what is loaded at import would say so.
if "ULAK_BROWSER" in os.environ:
    os.environ["BROWSER_OF_TESTS"] = os.environ.pop("ULAK_BROWSER")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    """A developer's own ULAK_ variables must not change what is tested."""
    for name in list(os.environ):
        if name.upper().startswith("ULAK_"):
            monkeypatch.delenv(name)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
