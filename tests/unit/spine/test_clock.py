"""The steady clock follows the wall forward, never back, and never stands still; instants keep their milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.clock import ManualClock, SteadyClock, to_datetime, to_millis
from ulak.errors import Invalid


def test_it_follows_the_wall_and_its_steps_forward():
    wall = ManualClock()
    clock = SteadyClock(wall)
    start = clock.now()
    wall.advance(2)
    assert clock.now() == start + 2000
    wall.step(3600)
    assert clock.now() == start + 3_602_000 == clock.wall()


def test_after_a_step_back_it_runs_at_half_its_pace_until_the_wall_has_caught_up():
    wall = ManualClock()
    clock = SteadyClock(wall)
    start = clock.now()
    wall.step(-60)
    assert clock.now() == start
    wall.advance(30)
    assert clock.now() == start + 15_000
    wall.advance(90)  # 120 s have passed: the wall is where half the pace has led
    assert clock.now() == start + 60_000 == clock.wall()
    wall.advance(10)
    assert clock.now() == clock.wall()


def test_time_that_was_stored_is_over():
    wall = ManualClock()
    clock = SteadyClock(wall)
    clock.not_before(wall.now() + 5000)
    assert clock.now() == wall.now() + 5000


@given(st.lists(st.tuples(st.sampled_from(["advance", "step"]), st.floats(-1000, 1000)), max_size=50))
def test_it_never_goes_back_and_never_stands_still(moves):
    wall = ManualClock()
    clock = SteadyClock(wall)
    before = clock.now()
    for move, seconds in moves:
        if move == "advance":
            wall.advance(abs(seconds))
            assert clock.now() >= before + int(abs(seconds) * 500) - 1
        else:
            wall.step(seconds)
        after = clock.now()
        assert after >= max(before, clock.wall())
        before = after


@given(st.integers(to_millis(datetime.min.replace(tzinfo=UTC)), to_millis(datetime.max.replace(tzinfo=UTC))))
def test_a_millisecond_survives_the_way_to_a_datetime_and_back(millis):
    instant = to_datetime(millis)
    assert (to_millis(instant), instant.tzinfo, instant.microsecond % 1000) == (millis, UTC, 0)


@pytest.mark.parametrize(("end", "hours"), [(datetime.max, -12), (datetime.min, 12)])
def test_an_instant_that_has_no_datetime_in_utc_is_the_last_or_first_that_has_one(end, hours):
    there = end.replace(tzinfo=timezone(timedelta(hours=hours)))
    assert to_millis(there) == to_millis(end.replace(tzinfo=UTC))
    assert to_datetime(to_millis(there)).year == end.year


def test_a_manual_clock_starts_at_the_instant_that_it_is_given():
    start = datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert to_datetime(ManualClock(start).now()) == start
    with pytest.raises(Invalid, match=r"start_at: .* has no time zone"):
        ManualClock(start.replace(tzinfo=None))
