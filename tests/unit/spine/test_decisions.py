"""Pure decisions: backoff, breaker, shares, what is hot, and how an attempt ends."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import Backoff, BreakerPolicy, Cancel, Done, Permanent, Retry, Snooze, Throttled, Transient
from ulak.spine.breaker import TRIAL_MILLIS, Breaker, Breakers, admit, failed, succeeded
from ulak.spine.handler import Handler, Handlers
from ulak.spine.job import SUSPECT_LEVEL, Job, Lease
from ulak.spine.loops import classify
from ulak.spine.loops.hints import LEVELS, WorkHints
from ulak.spine.outcome import Dead
from ulak.spine.rotation import Rotation
from ulak.spine.units.claim import Claimed

# Backoff


@given(st.integers(1, 10_000), st.floats(0.01, 100), st.floats(1, 10), st.floats(0, 1))
def test_a_delay_is_never_shorter_than_asked_nor_longer_than_the_cap_and_its_jitter(attempt, first, factor, jitter):
    backoff = Backoff(first, factor, 1000, jitter)
    delay = backoff.delay_seconds(attempt, random.Random(attempt))
    least = min(first * factor ** min(attempt - 1, 64), 1000)
    assert least <= delay <= least * (1 + jitter) + 1e-9


# Breaker

POLICY = BreakerPolicy(failures=3, open_seconds=10, cap_seconds=60)


def test_a_breaker_opens_after_failures_in_a_row_and_a_success_forgets_them():
    breaker = Breaker("shop")
    for _ in range(2):
        breaker = failed(breaker, POLICY, 0)
    assert (breaker.state, admit(breaker, 0)[1]) == ("closed", True)
    assert succeeded(breaker).failures == 0
    breaker = failed(breaker, POLICY, 0)
    assert (breaker.state, breaker.until_millis) == ("open", 10_000)
    assert not admit(breaker, 9_999)[1]


def test_exactly_one_is_let_through_for_a_trial_and_another_if_nothing_is_heard_of_it():
    breaker = Breaker("shop", "open", 3, 1, 10_000)
    trial, may_go = admit(breaker, 10_000)
    assert (trial.state, may_go) == ("half-open", True)
    assert not admit(trial, 10_001)[1]
    again, may_go = admit(trial, 10_000 + TRIAL_MILLIS)
    assert (again.state, may_go) == ("half-open", True)


def test_failures_of_those_under_way_do_not_lengthen_the_pause_and_a_failed_trial_doubles_it():
    breaker = Breaker("shop", "open", 3, 1, 10_000)
    for _ in range(50):
        breaker = failed(breaker, POLICY, 5)
    assert breaker.until_millis == 10_000
    pauses = []
    for _ in range(4):
        breaker, _ = admit(breaker, breaker.until_millis)
        breaker = failed(breaker, POLICY, 0)
        pauses.append(breaker.until_millis)
    assert pauses == [20_000, 40_000, 60_000, 60_000]


def test_who_is_stopped_by_a_trial_asks_again_soon_and_by_an_open_breaker_at_its_end():
    assert Breaker("shop", "open", 3, 1, 10_000).pause_seconds(2000) == 8
    assert Breaker("shop", "half-open", 3, 1, 30_000).pause_seconds(2000) == 1
    assert Breaker("shop", "open", 3, 1, 1000).pause_seconds(2000) == 0.1


def opened(*destinations):
    breakers = Breakers()
    for destination in destinations:
        for _ in range(3):
            breakers.failed(destination, POLICY, 0)
    breakers.changed.clear()
    return breakers


def test_a_breaker_whose_row_is_gone_at_two_looks_was_closed_elsewhere():
    breakers = opened("shop", "bank")
    shop, bank = ([one for one in breakers.all() if one.destination == name] for name in ("shop", "bank"))
    assert (breakers.compare(bank), breakers.compare(bank)) == ([], shop)
    assert breakers.all() == bank
    assert breakers.changed == []  # who closed it has told already


def test_a_breaker_that_opened_or_changed_since_the_last_look_may_not_be_saved_yet():
    breakers = opened("shop")
    assert breakers.compare([]) == []
    breakers.admit("shop", 10_000)  # the trial begins
    assert breakers.compare([]) == []
    breakers.failed("shop", POLICY, 10_001)
    assert breakers.compare([]) == []
    assert [one.state for one in breakers.stopping()] == ["open"]


def test_a_row_that_comes_back_in_between_counts_as_seen():
    breakers = opened("shop")
    shop = breakers.all()
    assert [breakers.compare(kept) for kept in ([], shop, [], [])] == [[], [], [], shop]


def test_a_closed_breaker_with_a_few_failures_is_not_compared():
    breakers = Breakers()
    breakers.failed("shop", POLICY, 0)
    assert (breakers.compare([]), breakers.compare([]), breakers.stopping()) == ([], [], [])
    assert len(breakers.all()) == 1


def test_only_changes_of_state_are_told_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr("ulak.spine.breaker.REMEMBERED", 3)
    breakers = Breakers()
    for number in range(10):
        for _ in range(3):
            breakers.failed(f"shop-{number}", POLICY, 0)
    assert len(breakers.all()) == 3
    assert [one.state for one in breakers.changed] == ["open"] * 10


def names(breakers):
    return {one.destination for one in breakers.all()}


def test_the_destination_that_was_not_used_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr("ulak.spine.breaker.REMEMBERED", 3)
    breakers = Breakers()
    for name in ("shop", "bank", "mill"):
        breakers.failed(name, POLICY, 0)
    assert breakers.admit("shop", 0) is None
    breakers.failed("port", POLICY, 0)
    assert names(breakers) == {"shop", "mill", "port"}


def test_an_open_breaker_is_forgotten_only_when_all_others_are_open_too(monkeypatch):
    monkeypatch.setattr("ulak.spine.breaker.REMEMBERED", 2)
    breakers = opened("shop")
    for name in ("bank", "mill", "port"):
        breakers.failed(name, POLICY, 0)
        assert names(breakers) == {"shop", name}
    for _ in range(2):
        breakers.failed("port", POLICY, 0)
    assert breakers.admit("shop", 1) is not None  # asked for in vain, but used
    breakers.failed("quay", POLICY, 0)
    assert names(breakers) == {"shop", "quay"}


def test_of_too_many_kept_breakers_those_that_were_used_last_are_loaded(monkeypatch):
    monkeypatch.setattr("ulak.spine.breaker.REMEMBERED", 2)
    breakers = Breakers()
    breakers.load([Breaker(f"shop-{until}", "open", 3, 1, until) for until in (3, 1, 2)])
    assert names(breakers) == {"shop-2", "shop-3"}


# Shares


@given(st.lists(st.integers(1, 50), min_size=40, max_size=80), st.sets(st.sampled_from(LEVELS), min_size=2))
def test_an_eighth_goes_to_the_lower_levels_and_each_of_them_gets_its_turn(frees, levels):
    rotation, ordered, given_to = Rotation(), tuple(sorted(levels)), Counter()
    for free in frees:
        level, share = rotation.favour(free, ordered)
        assert share <= free
        if share:
            given_to[level] += 1
    lower = ordered[1:]
    assert set(given_to) <= set(lower)
    if sum(given_to.values()) >= 2 * len(lower):
        assert set(given_to) == set(lower)
        assert max(given_to.values()) - min(given_to.values()) <= 1


@pytest.mark.parametrize("free", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("levels", [(1, 2, 3), (0, 3), (0, 1, 2, 3)], ids=len)
def test_no_lower_level_starves_whatever_the_size_of_a_claim(free, levels):
    rotation, favoured = Rotation(), Counter()
    for _ in range(8 * 20):
        level, share = rotation.favour(free, levels)
        favoured[level] += share
    assert all(favoured[level] > 0 for level in levels[1:])
    assert sum(favoured.values()) == free * 20


def test_a_single_level_needs_no_share():
    assert Rotation().favour(100, (2,)) == (2, 0)


# What is hot


async def nothing(_):
    """A handler."""


def lease(kind):
    return Lease(1, 1, kind, None, 2, 1, 0, 0, 0, None, b"null")


@pytest.fixture
def hints():
    handlers = Handlers()
    for kind in ("a", "b"):
        handlers.add(Handler(kind, nothing))
    return WorkHints(handlers)


def test_what_becomes_ready_while_a_claim_is_under_way_stays_hot_though_the_claim_found_nothing(hints):
    hints.add([("a", 2)])
    hints.claim_sent()
    hints.add([("a", 2)])
    hints.note(Claimed(dry=[("a", 2)]), 0)
    assert hints.levels(0) == {"a": (2,)}
    hints.claim_sent()
    hints.note(Claimed(dry=[("a", 2)]), 0)
    assert hints.levels(0) == {}


def test_a_look_everywhere_that_is_asked_for_while_a_claim_is_under_way_is_not_undone_by_its_answer(hints):
    hints.add_all()
    hints.claim_sent()
    hints.add_all()
    hints.note(Claimed(dry=[(kind, level) for kind in ("a", "b") for level in LEVELS]), 0)
    assert hints.levels(0) == {"a": LEVELS, "b": LEVELS}


def test_the_kind_that_was_served_longest_ago_comes_first(hints):
    hints.add_all()
    hints.note(Claimed(leases=[lease("a")]), 0)
    assert list(hints.levels(0)) == ["b", "a"]
    hints.note(Claimed(leases=[lease("b")]), 0)
    assert list(hints.levels(0)) == ["a", "b"]


def test_a_kind_rests_until_its_rate_allows_more_and_then_is_hot_at_every_level(hints):
    hints.add([("a", 0)])
    hints.note(Claimed(dry=[("a", 0)], rate_wait_seconds={"a": 0.4}), 10)
    assert hints.waits_for_rate("a", 10.3)
    assert hints.rest_seconds(10.1, 1) == pytest.approx(0.3)
    assert hints.levels(10.3) == {}
    assert not hints.waits_for_rate("a", 10.4)
    assert hints.levels(10.5) == {"a": LEVELS}


def test_suspects_are_announced_apart_and_kinds_without_a_handler_not_at_all(hints):
    hints.suspects = False
    hints.add([("c", 2), ("a", SUSPECT_LEVEL)])
    assert hints.suspects
    assert hints.levels(0) == {}


# How an attempt ends

JOB = Job(1, "mail.send", None, 3, 1)


def handler(**options):
    return Handler("mail.send", nothing, backoff=Backoff(10, 2, 1000, 0), **options)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Permanent("no"), Dead("Permanent: no", "permanent")),
        (Transient("busy"), Retry(40, "Transient: busy")),
        (ValueError("odd"), Retry(40, "ValueError: odd")),
        (Throttled("slow", retry_after_seconds=7), Retry(7, "Throttled: slow")),
        (Throttled("slow", retry_after_seconds=-7), Retry(0, "Throttled: slow")),
        (Throttled("slow", retry_after_seconds=1e9), Retry(3600, "Throttled: slow")),
        (Throttled("slow"), Retry(40, "Throttled: slow")),
    ],
    ids=repr,
)
def test_failures_are_sorted_by_what_to_do_next(error, outcome):
    assert classify.failed(error, handler(), JOB) == outcome


def test_the_last_attempt_ends_in_a_death_that_tells_the_cause():
    dead = classify.failed(Transient("busy"), handler(max_attempts=3), JOB)
    assert dead == Dead("gave up after 3 attempts: Transient: busy", "transient")
    assert isinstance(classify.bounded(Retry(5), handler(max_attempts=3), JOB), Dead)
    assert classify.bounded(Snooze(5), handler(max_attempts=3), JOB) == Snooze(5)


def test_what_is_returned_is_an_outcome():
    assert classify.answered(Cancel("enough")) == Cancel("enough")
    assert bytes(classify.answered({"a": 1}).result) == b'{"a":1}'
    assert classify.answered(Done()) == Done()


@pytest.mark.parametrize(
    "answer",
    [{1, 2, object()}, Done(object()), Retry("5"), Snooze(None, 7), "\ud800"],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_that_makes_no_sense_is_a_permanent_failure(answer):
    with pytest.raises(Permanent):
        classify.answered(answer)


@given(st.text())
def test_a_cause_can_be_stored_whatever_it_says(text):
    said = classify.describe(OSError(text))
    said.encode()
    assert "\x00" not in said
    assert len(said) <= 2000


@given(st.one_of(st.floats(allow_nan=True), st.integers(-(10**30), 10**30)))
def test_a_pause_ends_between_now_and_ten_years_from_now(seconds):
    at = classify.resume_at(Retry(seconds), 1000)
    assert 1000 <= at <= 1000 + 10 * 365 * 86_400_000
    assert classify.resume_at(Snooze(seconds), 1000) == max(at, 1100)  # a snooze is not charged, so it has a least
