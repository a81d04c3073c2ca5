"""The judge is fair: each kind of wrong that it is there for is seen."""

from __future__ import annotations

import dataclasses

import pytest

from tests.crash.audit import Audit, Past
from tests.crash.ledger import Ledger
from tests.crash.wire import Accepted, Began, Ended

GOOD = Audit(
    past=[Past(1, "plain", 1, {"token": 11}), Past(2, "plain", 2, {"token": 12})],
    dead=set(), tokens={11, 12}, owed=0, kept_twice=0, broken_chains=0, gaps=0, accepted_events_wrong=0,
    unbalanced={}, integrity="ok",
)  # fmt: skip


def began(identifier, epoch, crashes=0, key=None, at=0):
    return Began(identifier, "plain", key, epoch, epoch, crashes, 1, at)


def heard(*records):
    ledger = Ledger()
    for record in (Accepted([1, 2], [11, 12]), *records):
        ledger.hear(record)
    return ledger


SOUND = (
    began(1, 1), Ended(1, 1, "done"),
    began(2, 1), began(2, 2, crashes=1), Ended(2, 2, "done"),
)  # fmt: skip


def test_a_sound_life_has_no_violations():
    verdict = heard(*SOUND).judge(GOOD)
    assert verdict.violations == {}
    assert (verdict.accepted, verdict.ran, verdict.second_runs, verdict.explained) == (2, 2, 1, 1)


def test_a_job_that_began_and_never_ended_is_lost():
    assert heard(*SOUND[:4]).judge(GOOD).violations == {"lost": [2], "settled_without_run": [2]}


def test_a_job_that_the_store_does_not_have_is_lost():
    assert heard(*SOUND).judge(dataclasses.replace(GOOD, past=GOOD.past[:1])).violations == {"lost": [2]}


def test_a_second_run_without_a_mark_is_unexplained():
    assert len(heard(*SOUND, began(1, 2), Ended(1, 2, "done")).judge(GOOD).unexplained) == 1


def test_one_claim_that_ran_twice_is_unexplained():
    assert len(heard(*SOUND, began(1, 1)).judge(GOOD).unexplained) == 1


def test_a_retry_that_was_asked_for_is_explained():
    asked = heard(began(1, 1), Ended(1, 1, "retry"), began(1, 2), Ended(1, 2, "done"), *SOUND[2:])
    verdict = asked.judge(dataclasses.replace(GOOD, past=[Past(1, "plain", 2, {}), GOOD.past[1]]))
    assert verdict.violations == {}
    assert verdict.asked_for == 1


def test_a_settled_epoch_below_one_that_ran_is_stale():
    late = heard(*SOUND, began(1, 2, crashes=1))
    assert late.judge(GOOD).violations == {"stale_settles": [1]}


def test_an_id_that_answers_two_enqueues_is_seen():
    assert heard(*SOUND, Accepted([2], [13])).judge(GOOD).violations == {"answered_twice": 1}


def test_a_key_whose_later_job_ran_first_is_out_of_order():
    keyed = heard(began(2, 2, key="k", at=1), Ended(2, 2, "done"), began(1, 1, key="k", at=2), Ended(1, 1, "done"))
    assert keyed.judge(GOOD).violations == {"out_of_order": 1}


@pytest.mark.parametrize("name", ["kept_twice", "broken_chains", "accepted_events_wrong"])
def test_what_the_store_says_against_itself_is_a_violation(name):
    assert heard(*SOUND).judge(dataclasses.replace(GOOD, **{name: 1})).violations == {name: 1}


def test_a_broken_file_is_a_violation():
    verdict = heard(*SOUND).judge(dataclasses.replace(GOOD, integrity="row 1 missing from index job_ready"))
    assert "integrity" in verdict.violations
