"""The four targets: what is counted, and what is left of each budget."""

from __future__ import annotations

import pytest

from ulak.actions import slo
from ulak.actions.slo import Ended


def test_nothing_that_ended_leaves_every_budget_whole():
    told = slo.report([])
    assert told["success_rate"] == {"value": 1.0, "target": 0.99, "budget_left": 1.0}
    assert told["p95_end_to_end_seconds"]["value"] is None
    assert told["routes"] == told["channels"] == {}


def test_the_four_values_of_a_mixed_hour():
    found = [
        Ended("push", 1, False, "sent", None, 0.2, 94),
        Ended("push", 1, False, "delivered", None, 7.0, 5),
        Ended("email", None, True, "failed", "retry_exhausted", 21.0, 1),
        Ended("email", None, False, "skipped", None, 0.0, 50),
    ]
    told = slo.report(found)
    assert told["p95_end_to_end_seconds"]["value"] == 7.0
    assert told["success_rate"]["value"] == pytest.approx(0.99)
    assert told["success_rate"]["budget_left"] == pytest.approx(0.0)
    assert told["dlq_rate"]["value"] == pytest.approx(0.01)
    assert told["dlq_rate"]["budget_left"] == pytest.approx(-1.0)
    assert told["critical_retry_exhausted_rate"]["value"] == 1.0
    assert told["channels"]["push"]["success_rate"]["value"] == 1.0
    assert set(told["routes"]) == {"1"}


def test_an_undelivered_message_is_neither_a_success_nor_a_dead_letter():
    states = {"sent": 9, "undelivered": 1}
    told = slo.report([Ended("push", 1, False, state, None, 0.2, number) for state, number in states.items()])
    assert (told["success_rate"]["value"], told["dlq_rate"]["value"]) == (0.9, 0.0)
    assert [told[name]["budget_left"] for name in ("success_rate", "dlq_rate")] == [pytest.approx(-9.0), 1.0]
