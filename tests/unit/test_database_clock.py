"""The clock of a shared store: the database's, whatever this machine's says."""

from __future__ import annotations

import pytest

from ulak.clock import ManualClock, SystemClock
from ulak.stores.postgres.clock import DatabaseClock


class Machine(SystemClock):
    """A machine whose clocks a test moves."""

    def __init__(self) -> None:
        self.moved = ManualClock()

    def now(self) -> int:
        return self.moved.now()

    def monotonic(self) -> float:  # type: ignore[override]
        return self.moved.monotonic()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("ahead", [300_000, -300_000])
def test_it_tells_the_databases_time_where_the_machines_differs(machine, ahead):
    clock = DatabaseClock(machine)
    database = machine.now() + ahead
    clock.adjust(database, machine.monotonic())
    assert abs(clock.wall() - database) <= 1
    machine.moved.advance(10)
    assert abs(clock.wall() - database - 10_000) <= 1


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_setting_the_machines_clock_changes_nothing(machine, seconds):
    clock = DatabaseClock(machine)
    before = clock.now()
    machine.moved.step(seconds)
    machine.moved.advance(1)
    assert clock.now() == before + 1000


def test_a_slow_answer_that_agrees_moves_nothing_and_one_that_does_not_moves_as_little_as_it_must(machine):
    clock = DatabaseClock(machine)
    asked, said = machine.monotonic(), machine.now()
    machine.moved.advance(2)
    clock.adjust(said + 500, asked)
    assert clock.now() == said + 2000
    clock.adjust(said + 5000, asked)
    assert clock.now() == said + 5000 - 1


def test_a_clock_that_a_test_moves_by_hand_is_left_alone():
    moved = ManualClock()
    clock = DatabaseClock(moved)
    clock.adjust(moved.now() + 300_000, moved.monotonic())
    assert clock.now() == moved.now()
    moved.step(60)
    assert clock.now() == moved.now()
