"""What was claimed ahead of its time starts when the clock says so: in order, once, and never before."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ulak.clock import ManualClock
from ulak.spine.handler import Handler
from ulak.spine.job import Lease
from ulak.spine.loops.held import HeldJobs
from ulak.spine.loops.running import Attempt
from ulak.spine.outcome import DONE
from ulak.spine.units.claim import Demand, Want
from ulak.spine.units.timers import Look, budget_of, limits_of


class Track:
    """HeldJobs, and which of them it has started when."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.started: list[tuple[int, int]] = []
        self.held = HeldJobs(clock, self._start)
        self._ids = iter(range(1, 10_000))

    def _start(self, begun: list[Attempt]) -> None:
        assert begun, "an empty start wakes runners for nothing"
        self.started += [(one.lease.id, self.clock.now()) for one in begun]

    def running(self, millis: int, *, accepted: int = -1000, epoch: int = 1) -> Attempt:
        now = self.clock.now()
        lease = Lease(next(self._ids), epoch, "mail", None, 2, 1, 0, now + accepted, now + millis, None, b"null")
        return Attempt(lease, None, None)  # type: ignore[arg-type]

    def put(self, *millis: int) -> list[int]:
        begun = [self.running(one) for one in millis]
        self.held.put(begun)
        return [one.lease.id for one in begun]

    @property
    def ids(self) -> list[int]:
        return [identifier for identifier, _ in self.started]


async def settle_down() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def track(clock) -> Track:
    return Track(clock)


async def test_what_is_due_starts_at_once(track: Track):
    ids = track.put(-5, 0)
    assert track.ids == ids
    assert track.held.attempts() == []


async def test_the_rest_starts_at_its_millisecond_and_not_before(track: Track):
    now = track.clock.now()
    due, soon, later = track.put(0, 10, 25)
    for _ in range(30):
        await settle_down()
        track.clock.advance(0.001)
    await settle_down()
    assert track.started == [(due, now), (soon, now + 10), (later, now + 25)]


async def test_a_newcomer_that_is_due_earlier_does_not_wait_for_the_first(track: Track):
    (later,) = track.put(25)
    await settle_down()
    (soon,) = track.put(5)
    await settle_down()
    track.clock.advance(0.005)
    await settle_down()
    assert track.ids == [soon]
    track.clock.advance(0.02)
    await settle_down()
    assert track.ids == [soon, later]


async def test_after_everything_has_started_the_next_one_is_waited_for_again(track: Track):
    for _ in range(3):
        track.put(10)
        track.clock.advance(0.01)
        await settle_down()
    assert len(track.started) == 3


async def test_what_is_due_together_starts_together_in_the_order_of_its_time(track: Track):
    ids = track.put(20, 10, 15, 10)
    track.clock.advance(1)
    await settle_down()
    assert track.ids == [ids[1], ids[3], ids[2], ids[0]]


async def test_two_attempts_of_one_job_can_be_held(track: Track):
    first = track.running(10)
    second = Attempt(msgspec.structs.replace(first.lease, epoch=2), first.handler, first.times)
    track.held.put([second, first])
    track.clock.advance(0.01)
    await settle_down()
    assert track.ids == [first.lease.id] * 2


async def test_a_job_that_was_never_deferred_starts_at_once_whatever_the_clock_of_its_sender_says(track: Track):
    ahead_of_us = track.running(5000, accepted=5000)
    track.held.put([ahead_of_us])
    assert track.ids == [ahead_of_us.lease.id]


async def test_what_is_taken_back_does_not_start(track: Track):
    ids = track.put(20, 10)
    assert [one.lease.id for one in track.held.take_back()] == [ids[1], ids[0]]
    track.clock.advance(1)
    await settle_down()
    assert track.started == []
    assert track.held.take_back() == []


async def test_what_has_ended_meanwhile_is_not_counted(track: Track):
    one, other = track.running(10), track.running(10)
    track.held.put([one, other])
    one.outcome = DONE
    assert track.held.attempts() == [other]


def places(held: int, *wants: Want, free: int = 10, threads: int = 10, expected: int = 0) -> dict[str, int]:
    """How many of each kind alone may be taken ahead, beside so many mails that are held or expected."""
    mail = limits_of("thread", "mail")
    demand = Demand(1, wants, free, {"async": free, "thread": threads})
    budget = budget_of(demand, [mail] * held, [mail] * expected)
    return {kind: min(budget.places[limit] for limit in limits) for kind, limits in budget.needs.items()}


def test_half_of_the_capacity_of_the_worker_of_the_lane_and_of_the_kind_is_to_spare():
    wants = (Want("mail", 100, ()), Want("call", 6, ()), Want("fax", 100, (), lane="thread"), Want("sms", 1, ()))
    assert places(0, *wants, free=20, threads=8) == {"mail": 10, "call": 3, "fax": 4, "sms": 0}


def test_what_is_held_counts_as_part_of_that_half():
    want = Want("mail", 8, (), lane="thread")
    assert [places(held, want, free=100)["mail"] for held in (0, 2, 6, 8, 20)] == [4, 3, 1, 0, -6]


def test_what_is_expected_is_still_part_of_the_capacity_and_spoken_for():
    want = Want("mail", 8, (), lane="thread")
    assert [places(0, want, free=100, expected=number)["mail"] for number in (0, 3, 4)] == [4, 1, 0]


async def test_what_a_look_made_ready_is_expected_until_it_is_claimed_or_due(track: Track):
    demand = Demand(1, (Want("mail", 10, ()),), 10, {"async": 10})
    ours, others = track.running(10), track.running(20)
    ours.handler = Handler("mail", lambda _: None, lane="thread")
    budget = track.held.budget(demand)
    track.held.expect(Look(None, [(one.lease.id, one.lease.due_at, "mail") for one in (ours, others)]), budget)
    assert (budget.places["all"], track.held.budget(demand).places["all"]) == (5, 3)
    track.held.put([ours])
    assert track.held.budget(replace(demand, free=9)).places["all"] == 3
    track.clock.advance(0.02)
    await settle_down()
    assert track.held.budget(demand).places["all"] == 5


def test_a_kind_with_a_rate_has_nothing_to_spare():
    assert places(0, Want("mail", 8, (), rate_per_second=5.0)) == {}


class HastyClock(ManualClock):
    """Its waits end at once, before their time, as a timer of the event loop may."""

    async def wait(self, event, seconds):
        await asyncio.sleep(0)
        return event.is_set()


async def test_a_wait_that_ends_too_early_starts_nothing():
    track = Track(HastyClock())
    track.put(10)
    for _ in range(9):
        track.clock.advance(0.001)
        await settle_down()
    assert track.started == []
    track.clock.advance(0.001)
    await settle_down()
    assert len(track.started) == 1


@given(st.lists(st.lists(st.integers(-5, 40), max_size=5), max_size=8), st.lists(st.integers(1, 20), max_size=12))
def test_each_starts_once_at_the_first_look_that_is_not_before_its_time(batches, steps):
    async def run() -> None:
        track = Track(ManualClock())
        due: dict[int, int] = {}
        for number in range(max(len(batches), len(steps))):
            begun = [track.running(millis) for millis in (batches[number] if number < len(batches) else [])]
            due |= {one.lease.id: one.lease.due_at for one in begun}
            if begun:
                track.held.put(begun)
            await settle_down()
            track.clock.advance((steps[number] if number < len(steps) else 0) / 1000)
            track.held.start_due()
        assert sorted(track.ids) == sorted(one for one in due if due[one] <= track.clock.now())
        assert all(at >= due[identifier] for identifier, at in track.started)
        track.held.take_back()

    asyncio.run(run())
