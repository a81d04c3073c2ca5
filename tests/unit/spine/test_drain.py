"""What a refused caller is told of when to come back, by how fast places have come free lately."""

from __future__ import annotations

import pytest

from ulak.clock import ManualClock
from ulak.spine.capacity import live_pool
from ulak.spine.loops.drain import MAX_RETRY_SECONDS, MIN_RETRY_SECONDS, DrainRates

MAIL, LIVE = "mail.send", live_pool("mail.send")


@pytest.fixture
def clock():
    return ManualClock()


def drained(clock, *, per_second, seconds, word="done"):
    rates = DrainRates(clock)
    for _ in range(seconds * 10):
        clock.advance(0.1)
        rates.note(word, MAIL, per_second // 10)
    return rates


def test_where_nothing_comes_free_the_answer_is_the_longest(clock):
    assert DrainRates(clock).seconds_for(MAIL, 1) == MAX_RETRY_SECONDS


@pytest.mark.parametrize("seconds", [2, 60])
def test_the_wait_is_what_is_ahead_by_what_comes_free_in_a_second(clock, seconds):
    rates = drained(clock, per_second=50, seconds=seconds)
    assert rates.seconds_for(MAIL, 500) == pytest.approx(10, rel=0.1)
    assert rates.seconds_for(LIVE, 500) == pytest.approx(10, rel=0.1)


def test_it_is_never_less_than_a_second_and_never_more_than_half_a_minute(clock):
    rates = drained(clock, per_second=50, seconds=10)
    assert rates.seconds_for(MAIL, 1) == MIN_RETRY_SECONDS
    assert rates.seconds_for(MAIL, 10_000) == MAX_RETRY_SECONDS


def test_what_came_free_long_ago_does_not_count(clock):
    rates = drained(clock, per_second=50, seconds=10)
    clock.advance(120)
    assert rates.seconds_for(MAIL, 1) == MAX_RETRY_SECONDS


def test_a_retry_frees_a_place_among_the_active_and_none_among_the_live(clock):
    rates = drained(clock, per_second=50, seconds=10, word="retried")
    assert rates.seconds_for(MAIL, 100) < 3
    assert rates.seconds_for(LIVE, 100) == MAX_RETRY_SECONDS
