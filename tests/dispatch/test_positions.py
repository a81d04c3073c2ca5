"""Positions that wait to be written: the newest of each helper, in the order of ids."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ulak.dispatch import positions
from ulak.dispatch.forms import NamedPosition
from ulak.dispatch.positions import Hints
from ulak.errors import Refused


@dataclass
class StandingClock:
    millis: int = 5_000

    def now(self) -> int:
        return self.millis


@pytest.fixture
def hints():
    return Hints(StandingClock)


def at(latitude: float) -> NamedPosition:
    return NamedPosition("h", latitude, 29.0)


def test_all_are_written_in_the_order_of_ids(hints):
    hints.put([9, 4], [at(41.0)] * 2, 1_000)
    hints.put([7, 9], [at(42.0)] * 2, 3_000)
    taken = hints.take()
    assert (next(taken)[0], len(hints), hints.lag_seconds()) == (4, 2, 2.0)
    assert [one for one, _ in taken] == [7, 9]
    hints.written([(one, None) for one in (4, 7, 9)], [])
    assert (len(hints), hints.lag_seconds()) == (0, 0.0)


def test_a_position_that_comes_before_its_turn_is_written_instead(hints):
    hints.put([1, 2], [at(41.0)] * 2, 1_000)
    taken = hints.take()
    first = next(taken)
    hints.put([1, 2], [at(42.0)] * 2, 2_000)
    rest = list(taken)
    assert [(one, hint.position.latitude, hint.at) for one, hint in rest] == [(2, 42.0, 2_000)]
    hints.written([first, *rest], [])
    assert [(one, hint.position.latitude) for one, hint in hints.take()] == [(1, 42.0)]


def test_who_was_not_reached_is_tried_again_unless_a_newer_position_came(hints):
    hints.put([1, 2], [at(41.0)] * 2, 1_000)
    missed = list(hints.take())
    hints.put([2], [at(42.0)], 2_000)
    hints.written(missed, missed)
    found = [(one, hint.position.latitude, hint.at) for one, hint in hints.take()]
    assert sorted(found) == [(1, 41.0, 1_000), (2, 42.0, 2_000)]


def test_a_flush_that_fails_loses_nothing(hints):
    hints.put([0, 1, 2, 3], [at(41.0)] * 4, 1_000)
    taken = hints.take()
    hints.written([next(taken)], [])
    hints.put([1, 2], [at(42.0)] * 2, 2_000)
    next(taken)
    hints.end()
    found = [(one, hint.position.latitude) for one, hint in hints.take()]
    assert found == [(1, 42.0), (2, 42.0), (3, 41.0)]


def test_nobody_is_tried_for_ever(hints):
    hints.put([1], [at(41.0)], 1_000)
    for _ in range(positions.MAX_TRIES):
        missed = list(hints.take())
        assert len(missed) == 1
        hints.written(missed, missed)
    assert len(hints) == 0


def test_with_a_million_helpers_waiting_more_positions_are_refused(hints):
    assert positions.MAX_WAITING == 1_000_000
    hints.put(range(1_000_000), [at(41.0)] * 1_000_000, 1_000)
    with pytest.raises(Refused, match="send fewer"):
        hints.put([1], [at(42.0)], 2_000)
    assert len(hints) == 1_000_000
