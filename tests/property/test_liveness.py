"""No backlog starves an answering key: a job that has a slot starts within a number of attempts that can be told.

Attempts are counted in rounds of a second. Whatever the other keys do (answer, fail, hide behind a breaker, take long),
a ready job of a key that answers waits at most (keys * slots / consumers, rounded up, + 1) longest attempts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.postgres_server import fresh_database
from tests.property.driver import Driver, opened
from ulak.spine.job import READY, Lease, Row
from ulak.spine.outcome import Done, Outcome, Retry, Settlement, Snooze
from ulak.spine.units.claim import Demand, Want
from ulak.spine.units.enqueue import ENQUEUE
from ulak.spine.units.settle import SETTLE
from ulak.spine.units.timers import PROMOTE_DUE

ROUNDS = 40
SLOTS = 2
NATURES = ("answers", "fails", "down", "slow")


@dataclass(frozen=True)
class Town:
    """The keys by their nature, how many jobs run at once, and the longest attempt in rounds."""

    natures: list[str]
    consumers: int
    longest: int
    backlog: int
    seed: int

    @property
    def bound(self) -> int:
        return (-(-len(self.natures) * SLOTS // self.consumers) + 1) * self.longest


towns = st.builds(
    Town,
    st.lists(st.sampled_from(NATURES), min_size=1, max_size=7).map(lambda natures: ["answers", *natures]),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 30),
    st.integers(0, 1 << 32),
)


class Rounds:
    def __init__(self, driver: Driver, town: Town) -> None:
        self._driver = driver
        self._town = town
        self._chance = Random(town.seed)
        self._kind = f"work{driver.begin()}"
        self._tag = self._kind.removeprefix("work")
        self._under_way: list[tuple[int, Lease]] = []  # the round in which it ends
        self._waits: defaultdict[tuple[int, int], int] = defaultdict(int)  # by id and turn
        self.longest_wait = 0

    def run(self) -> None:
        for key in range(len(self._town.natures)):
            self._add(key, self._chance.randint(0, self._town.backlog))
        for now in range(ROUNDS):
            self._end_attempts(now)
            self._driver.clock.advance(1)
            self._driver.submit(PROMOTE_DUE, None)
            for key in range(len(self._town.natures)):
                self._add(key, self._chance.choice([0, 0, 0, 1, 1, 5]))
            self._claim(now)
            self._note_waits()

    def _add(self, key: int, number: int) -> None:
        at, ids = self._driver.clock.now(), self._driver.store.ids
        rest = (2, at, READY, at, None, None, None, 0, b"null")
        if number:
            rows = [Row(ids.take(at), self._kind, f"key{key}", SLOTS, None, *rest) for _ in range(number)]
            self._driver.submit(ENQUEUE, rows)

    def _end_attempts(self, now: int) -> None:
        ended = [lease for ends, lease in self._under_way if ends <= now]
        self._under_way = [(ends, lease) for ends, lease in self._under_way if ends > now]
        at = self._driver.clock.now()
        if ended:
            self._driver.submit(
                SETTLE,
                [
                    Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, self._outcome(one), at + 1000)
                    for one in ended
                ],
            )

    def _nature(self, key: str | None) -> str:
        assert key is not None
        return self._town.natures[int(key.removeprefix("key"))]

    def _outcome(self, lease: Lease) -> Outcome:
        return {"fails": Retry(1.0, "503"), "down": Snooze(1.0, "open", holds=True)}.get(
            self._nature(lease.key), Done()
        )

    def _claim(self, now: int) -> None:
        free = self._town.consumers - len(self._under_way)
        if free > 0:
            demand = Demand(1, (Want(self._kind, free, (2,)),), free, {"async": free})
            for lease in self._driver.submit(self._driver.claimer.verb, demand).leases:
                takes = self._town.longest if self._nature(lease.key) == "slow" else 1
                self._under_way.append((now + takes, lease))

    def _note_waits(self) -> None:
        for row in self._driver.snapshot(self._tag).live:
            if row.state == READY and row.slot is not None and self._nature(row.key) == "answers":
                self._waits[row.id, row.turn] += 1
        self.longest_wait = max(self._waits.values(), default=0)


def starts_in_time(driver: Driver, town: Town) -> None:
    rounds = Rounds(driver, town)
    rounds.run()
    assert rounds.longest_wait <= town.bound, f"waited {rounds.longest_wait} rounds, allowed are {town.bound}"


def check(address: str, share: float) -> None:
    examples = max(int(settings.default.max_examples * share), 1)
    with opened(address) as driver:

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
        @given(town=towns)
        def every_town(town: Town) -> None:
            starts_in_time(driver, town)

        every_town()


@pytest.mark.slow
def test_on_sqlite_a_job_with_a_slot_starts_within_its_bound():
    check("memory:", 0.25)


@pytest.mark.slow
@pytest.mark.postgres
def test_on_postgresql_a_job_with_a_slot_starts_within_its_bound():
    with fresh_database() as address:
        check(address, 0.06)
