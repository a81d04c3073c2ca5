"""Positions that wait to be written: the newest of each helper, the oldest first, in the order of ids."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ulak.dispatch import positions
from ulak.dispatch.positions import Hint, Hints


@dataclass
class StandingClock:
    millis: int = 5_000

    def now(self) -> int:
        return self.millis


@pytest.fixture
def hints(monkeypatch):
    monkeypatch.setattr(positions, "MAX_TAKEN", 3)
    return Hints(StandingClock)


def test_the_oldest_are_taken_first_and_written_in_the_order_of_ids(hints):
    hints.put(Hint(one, 41.0, 29.0, 1_000) for one in (9, 4, 7, 1))
    assert [one.id for one in hints.take()] == [4, 7, 9]
    assert (len(hints), hints.lag_seconds()) == (4, 4.0)
    hints.written({4, 7, 9})
    assert [one.id for one in hints.take()] == [1]


def test_who_was_not_reached_is_tried_again_unless_a_newer_position_came(hints):
    hints.put([Hint(1, 41.0, 29.0, 1_000), Hint(2, 41.0, 29.0, 1_000)])
    hints.take()
    hints.put([Hint(2, 42.0, 29.0, 2_000)])
    hints.written(set())
    assert [(one.id, one.latitude, one.tries) for one in hints.take()] == [(1, 41.0, 1), (2, 42.0, 0)]


def test_nobody_is_tried_for_ever(hints):
    hints.put([Hint(1, 41.0, 29.0, 1_000)])
    for _ in range(positions.MAX_TRIES):
        assert len(hints.take()) == 1
        hints.written(set())
    assert len(hints) == 0
