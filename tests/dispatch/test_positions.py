"""Positions that wait to be written: the newest of each helper, the oldest first, in the order of ids."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ulak.dispatch import positions
from ulak.dispatch.forms import NamedPosition
from ulak.dispatch.positions import Hints


@dataclass
class StandingClock:
    millis: int = 5_000

    def now(self) -> int:
        return self.millis


@pytest.fixture
def hints(monkeypatch):
    monkeypatch.setattr(positions, "MAX_TAKEN", 3)
    return Hints(StandingClock)


def at(latitude: float) -> NamedPosition:
    return NamedPosition("h", latitude, 29.0)


def test_the_oldest_are_taken_first_and_written_in_the_order_of_ids(hints):
    hints.put([9, 4, 7, 1], [at(41.0)] * 4, 1_000)
    assert [one for one, _ in hints.take()] == [4, 7, 9]
    assert (len(hints), hints.lag_seconds()) == (4, 4.0)
    hints.written({4, 7, 9})
    assert [one for one, _ in hints.take()] == [1]


def test_who_was_not_reached_is_tried_again_unless_a_newer_position_came(hints):
    hints.put([1, 2], [at(41.0)] * 2, 1_000)
    hints.take()
    hints.put([2], [at(42.0)], 2_000)
    hints.written(set())
    found = [(one, position.latitude, at) for one, (position, at) in hints.take()]
    assert found == [(1, 41.0, 1_000), (2, 42.0, 2_000)]


def test_nobody_is_tried_for_ever(hints):
    hints.put([1], [at(41.0)], 1_000)
    for _ in range(positions.MAX_TRIES):
        assert len(list(hints.take())) == 1
        hints.written(set())
    assert len(hints) == 0
