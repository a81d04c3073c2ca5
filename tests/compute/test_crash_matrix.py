"""Everything that can go wrong × every moment at which it can. The engine answers each and goes on."""

from __future__ import annotations

import os
import pickle

import pytest

from tests.compute import jobs
from ulak.compute import Crashed, UnpicklableResult

LETHAL = [jobs.kill_self, jobs.segfault, jobs.abort, jobs.exit_c]
HARMLESS = [(jobs.exit_python, SystemExit), (jobs.memory_error, MemoryError), (jobs.unpickle_error, RuntimeError)]


@pytest.fixture(autouse=True)
def _the_engine_goes_on(engine):
    yield
    assert [engine.submit(jobs.echo, number).result(30) for number in range(3)] == [0, 1, 2]


@pytest.fixture
def once(engine):
    return engine.using(max_retries=1)


@pytest.mark.parametrize("action", LETHAL)
class TestLethal:
    def test_while_the_argument_is_unpickled(self, once, action):
        self.is_named(once.submit(jobs.echo, jobs.Bomb(action, "unpickle")))

    def test_while_it_runs(self, once, action):
        self.is_named(once.submit(action))

    def test_while_the_result_is_pickled(self, once, action):
        self.is_named(once.submit(jobs.make_bomb, action, "pickle"))

    def test_while_the_result_is_collected(self, once, action):
        assert once.submit(jobs.die_after_return, action).result(30) == "returned"

    def is_named(self, future):
        error = future.exception(30)
        assert isinstance(error, Crashed)
        assert "ended its worker 2 times" in str(error)


@pytest.mark.parametrize(("action", "kind"), HARMLESS)
class TestHarmless:
    def test_while_the_argument_is_unpickled(self, once, action, kind):
        assert isinstance(once.submit(jobs.echo, jobs.Bomb(action, "unpickle")).exception(30), kind)

    def test_while_it_runs(self, once, action, kind):
        assert isinstance(once.submit(action).exception(30), kind)

    def test_while_the_result_is_pickled(self, once, action, kind):
        error = once.submit(jobs.make_bomb, action, "pickle").exception(30)
        assert isinstance(error, UnpicklableResult)

    def test_while_the_result_is_collected(self, once, action, kind):
        error = once.submit(jobs.make_bomb, action, "unpickle").exception(30)
        assert isinstance(error, UnpicklableResult)
        assert isinstance(error.__cause__, kind)


def test_unpicklable_argument(once):
    assert isinstance(once.submit(jobs.echo, jobs.a_lock()).exception(30), pickle.PicklingError | TypeError)


def test_unpicklable_result(once):
    assert isinstance(once.submit(jobs.a_lock).exception(30), UnpicklableResult)


def test_unpicklable_exception(once):
    error = once.submit(jobs.raise_stubborn).exception(30)
    assert isinstance(error, UnpicklableResult)
    assert "Stubborn" in str(error)
    assert "raise_stubborn" in str(error.__cause__)


def test_result_that_loads_in_the_worker_but_not_here(once):
    assert isinstance(once.submit(jobs.result_for_parent, os.getpid()).exception(30), UnpicklableResult)
