"""A machine that does whatever people could do, on a real store, and looks after every step that nothing is broken."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.dispatch.audit import faults
from tests.dispatch.conftest import request
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.clock import ManualClock
from ulak.errors import Conflict, NotFound, Refused
from ulak.settings import Settings
from ulak.testing import advance, drain

NAMES = [f"h{number}" for number in range(6)]
names = st.sampled_from(NAMES)
numbers = st.integers(0, 30)


class Machine(RuleBasedStateMachine):
    """Each rule is one verb, with any helper and any task; refusals are part of the game."""

    address = "memory:"

    @initialize()
    def open_ulak(self) -> None:
        self._stack = contextlib.ExitStack()
        address = self._stack.enter_context(fresh_database()) if self.address == "postgres" else self.address
        self._runner = self._stack.enter_context(asyncio.Runner())
        self.clock = ManualClock()
        given = Settings(store=address, dispatch={"time_zone": "UTC", "pause_after_timeouts": 2})
        self.ulak = Ulak(address, settings=given, clock=self.clock)
        self._do(self.ulak.open())
        self.tasks: list[int] = []
        for name in NAMES:
            self.put(name, True, 0)

    def teardown(self) -> None:
        if hasattr(self, "ulak"):
            self._do(self.ulak.close())
            self._stack.close()

    def _do(self, work: Any) -> Any:
        with contextlib.suppress(Conflict, NotFound, Refused):
            return self._runner.run(work)

    @rule(name=names, active=st.booleans(), north=st.integers(0, 120))
    def put(self, name: str, active: bool, north: int) -> None:
        place = {"latitude": 41 + north * 1e-4, "longitude": 29.0}
        self._do(self.ulak.dispatch.put_helper(name, {"isActive": active, **place}))

    @rule(name=names)
    def forget(self, name: str) -> None:
        self._do(self.ulak.dispatch.forget_helper(name))

    @rule(width=st.integers(1, 4), deadline=st.sampled_from([10, 60]))
    def open(self, width: int, deadline: int) -> None:
        view = self._do(self.ulak.dispatch.open(request(width=width, deadlineSeconds=deadline)))
        self.tasks.append(view.task.id)

    @rule(verb=st.sampled_from(["accept", "reject", "complete", "release"]), name=names, number=numbers)
    def answer(self, verb: str, name: str, number: int) -> None:
        if self.tasks:
            task = self.tasks[-1 - number % len(self.tasks)]
            self._do(getattr(self.ulak.dispatch, verb)(task, name))

    @rule(verb=st.sampled_from(["accept", "reject"]), number=numbers)
    def answer_as_asked(self, verb: str, number: int) -> None:
        """Whoever is really asked: random pairs seldom meet."""
        if self.tasks:
            task = self.tasks[-1 - number % len(self.tasks)]
            view = self._do(self.ulak.dispatch.task(task))
            if view.pending:
                self._do(getattr(self.ulak.dispatch, verb)(task, view.pending[number % len(view.pending)].helper))

    @rule(number=numbers)
    def race(self, number: int) -> None:
        """Everybody accepts at once, and the requester cancels."""
        if self.tasks:
            task = self.tasks[-1 - number % len(self.tasks)]

            async def all_at_once() -> None:
                verbs = [self.ulak.dispatch.accept(task, name) for name in NAMES]
                await asyncio.gather(*verbs, self.ulak.dispatch.cancel(task), return_exceptions=True)

            self._do(all_at_once())

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        if self.tasks:
            self._do(self.ulak.dispatch.cancel(self.tasks[-1 - number % len(self.tasks)]))

    @rule(seconds=st.sampled_from([1, 9, 10, 61]))
    def wait(self, seconds: int) -> None:
        self._do(advance(self.ulak, seconds))

    @rule(name=names)
    def pull(self, name: str) -> None:
        self._do(self.ulak.dispatch.offers(name))

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "ulak"):
            self._do(drain(self.ulak))
            assert self._do(self.ulak.store.read(faults)) == []


class PostgresMachine(Machine):
    address = "postgres"


_quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def test_whatever_people_do_nothing_is_broken():
    Machine.TestCase.settings = settings(
        max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=_quiet
    )
    Machine.TestCase().runTest()


@pytest.mark.postgres
def test_whatever_people_do_nothing_is_broken_on_postgres():
    PostgresMachine.TestCase.settings = settings(
        max_examples=8, stateful_step_count=30, deadline=None, suppress_health_check=_quiet
    )
    PostgresMachine.TestCase().runTest()
