"""The real spine beside a small model: whatever is done in whatever order, both end up the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres_server import fresh_database
from tests.property.driver import opened
from tests.property.machine import SpineMachine


def compare(address: str, share: float) -> None:
    """Run a share of the profile's examples, all on one store."""
    examples = max(int(settings.default.max_examples * share), 1)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=50,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    with opened(address) as driver:
        run_state_machine_as_test(lambda: SpineMachine(driver), settings=chosen)


@pytest.mark.slow
def test_the_spine_on_sqlite_does_what_the_model_does():
    compare("memory:", 0.8)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_spine_on_postgresql_does_what_the_model_does():
    with fresh_database() as address:
        compare(address, 0.15)
