"""What-if: the repaired rule against the seed's, by the same decisions on a virtual clock."""

from __future__ import annotations

import pytest

from ulak.dispatch.fairness import gini_of
from ulak.dispatch.policy import Policy
from ulak.dispatch.simulate import Call, Neighbour, first_of_month, simulate, town


@pytest.fixture(scope="module")
def outcomes():
    found = simulate(*town(20, 300, 0.3, 1, first_of_month()), 1, Policy())
    return {one.policy: one for one in found}


def test_silent_helpers_hold_up_the_seeds_rule_for_an_hour(outcomes):
    assert 55 * 60 < outcomes["seed"].median_seconds < 70 * 60


def test_the_repaired_rule_assigns_within_two_and_a_half_minutes(outcomes):
    assert outcomes["repaired"].median_seconds <= 150
    assert outcomes["width-3"].median_seconds < outcomes["repaired"].median_seconds


def test_work_is_shared_evenly_among_those_who_answer(outcomes):
    assert all(one.gini <= 0.05 for one in outcomes.values())


def test_the_same_seed_tells_the_same_story(outcomes):
    again = simulate(*town(20, 300, 0.3, 1, first_of_month()), 1, Policy())
    assert {one.policy: one for one in again} == outcomes


def test_nobody_in_reach_means_nobody_assigned():
    people = [Neighbour("far", 52.0, 13.0)]
    (outcome,) = simulate(people, [Call(first_of_month(), 41.0, 29.0)], 1, Policy(), ["repaired"])
    assert (outcome.assigned, outcome.unassigned, outcome.median_seconds) == (0, 1, 0.0)


@pytest.mark.parametrize(
    ("shares", "gini"), [({}, 0), ({0: 5}, 0), ({3: 7}, 0), ({0: 1, 1: 1}, 0.5), ({0: 99, 100: 1}, 0.99)]
)
def test_gini_is_nought_for_equals_and_near_one_for_one_who_has_all(shares, gini):
    assert gini_of(shares) == pytest.approx(gini)
