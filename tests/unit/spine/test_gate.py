"""The gate beside a store that answers as it is told: wake-ups that come at awkward moments."""

from __future__ import annotations

import asyncio

import pytest

from ulak import Refused, Unavailable
from ulak.clock import ManualClock
from ulak.spine.breaker import BreakerPolicy, Breakers
from ulak.spine.capacity import Capacity
from ulak.spine.handler import Handler, Handlers
from ulak.spine.job import Row
from ulak.spine.loops.gate import Gate, Waiter
from ulak.spine.telemetry import Telemetry
from ulak.spine.units.enqueue import ENQUEUE, Full


class Store:
    """Capacity is what the test says it is; `before_answer` runs between the verdict and its delivery."""

    def __init__(self, free=0):
        self.capacity = Capacity(lambda _: 10)
        self.capacity.available["mail.send"] = free
        self.handlers = Handlers()
        self.key = None  # whose share is used up
        self.before_answer = None
        self.accepted = []
        self.asked = 0

    @property
    def free(self):
        return self.capacity.available["mail.send"]

    async def submit(self, verb, rows):
        self.asked += 1
        full = self.free < len(rows)
        if not full:
            self.capacity.available["mail.send"] -= len(rows)
            self.accepted.append(rows[0].id)
        if self.before_answer is not None:
            action, self.before_answer = self.before_answer, None
            action()
        await asyncio.sleep(0)
        return Full("mail.send", len(rows), key=self.key) if full else [row.id for row in rows]

    def give(self, gate, number=1):
        self.capacity.available["mail.send"] += number
        gate.announce(["mail.send"])


def rows(identifier, number=1):
    plain = (None, 1, None, 2, 0, 0, 0, None, None, None, 0, b"null")
    return [Row(identifier + index, "mail.send", *plain) for index in range(number)]


def make(free=0):
    store, clock = Store(free), ManualClock()
    return store, clock, Gate(store, clock, store.handlers, Telemetry(), Breakers())


async def turn():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_capacity_that_comes_between_the_refusal_and_the_line_is_taken():
    store, _, gate = make()
    store.before_answer = lambda: store.give(gate)
    assert await asyncio.wait_for(gate.put(rows(1)), 5) == [1]


async def test_those_who_wait_go_in_the_order_in_which_they_came():
    store, _, gate = make()
    waiting = []
    for identifier in range(5):
        waiting.append(asyncio.create_task(gate.put(rows(identifier))))
        await turn()
    for _ in range(5):
        store.give(gate)
        await turn()
    await asyncio.gather(*waiting)
    assert store.accepted == list(range(5))


async def test_one_who_is_cancelled_in_the_moment_of_its_turn_passes_it_on():
    store, _, gate = make()
    first = asyncio.create_task(gate.put(rows(1)))
    await turn()
    second = asyncio.create_task(gate.put(rows(2)))
    await turn()
    store.give(gate)
    first.cancel()  # woken, and gone before it could ask
    assert await asyncio.wait_for(second, 5) == [2]
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_one_whose_request_fails_passes_its_turn_on():
    store, _, gate = make()
    first = asyncio.create_task(gate.put(rows(1)))
    await turn()
    second = asyncio.create_task(gate.put(rows(2)))
    await turn()

    def fail():
        store.accepted.remove(1)
        store.capacity.available["mail.send"] += 1
        raise Unavailable("the database went away")

    store.before_answer = fail
    store.give(gate)
    with pytest.raises(Unavailable):
        await first
    assert await asyncio.wait_for(second, 5) == [2]


async def test_a_large_request_at_the_head_is_not_overtaken_and_does_not_spin():
    store, _, gate = make()
    large = asyncio.create_task(gate.put(rows(1, 3)))
    await turn()
    small = asyncio.create_task(gate.put(rows(10)))
    await turn()
    asked = store.asked
    for _ in range(3):
        assert not large.done()
        assert not small.done()
        store.give(gate)
        await turn()
    assert await large == [1, 2, 3]
    assert store.asked - asked <= 4
    store.give(gate)
    assert await small == [10]


async def test_a_time_that_is_over_refuses_and_tells_the_next():
    store, clock, gate = make()
    large = asyncio.create_task(gate.offer(rows(1, 3), 5))
    await turn()
    small = asyncio.create_task(gate.put(rows(10)))
    await turn()
    store.give(gate)
    await turn()
    clock.advance(5)
    assert await large is None
    assert await asyncio.wait_for(small, 5) == [10]


async def test_one_who_was_woken_in_vain_and_has_no_time_left_tells_the_next():
    store, clock, gate = make()
    large = asyncio.create_task(gate.offer(rows(1, 3), 5))
    await turn()
    small = asyncio.create_task(gate.put(rows(10)))
    await turn()
    store.before_answer = lambda: clock.advance(5)
    store.give(gate)
    assert await large is None
    assert await asyncio.wait_for(small, 5) == [10]


async def test_a_newcomer_does_not_take_the_capacity_that_one_before_it_waits_to_grow():
    store, _, gate = make()
    large = asyncio.create_task(gate.put(rows(1, 3)))
    await turn()
    store.give(gate, 2)
    await turn()
    small = asyncio.create_task(gate.put(rows(10)))
    await turn()
    assert store.accepted == []
    store.give(gate)
    assert await large == [1, 2, 3]
    store.give(gate)
    assert await small == [10]


async def test_nobody_waits_for_a_gate_that_is_closed():
    store, _, gate = make()
    waiting = asyncio.create_task(gate.put(rows(1)))
    await turn()
    store.before_answer = gate.close
    late = asyncio.create_task(gate.put(rows(2)))
    for task in (waiting, late):
        gate.close()
        with pytest.raises(Unavailable, match="stopping"):
            await asyncio.wait_for(task, 5)


async def test_what_can_never_fit_is_refused_at_once():
    _, _, gate = make()
    with pytest.raises(Refused, match="send fewer"):
        await gate.put(rows(1, 11))


def test_two_in_line_are_told_apart_by_who_they_are():
    line = [Waiter(ticket=1, need=1)]
    assert Waiter(ticket=1, need=1) not in line


def of_key(identifier):
    return rows(identifier)[0]._replace(key="shop")


async def refused(gate, row):
    with pytest.raises(Refused) as refusal:
        await gate.in_line(row, ENQUEUE, [row], 1)
    return refusal.value.retry_after_seconds


async def test_a_refusal_says_when_a_place_is_free_for_one_who_comes_back():
    store, clock, gate = make()
    store.handlers.add(Handler("mail.send", print, "thread", admission="reject"))
    assert await refused(gate, rows(1)[0]) == 30
    for _ in range(100):
        clock.advance(0.1)
        gate.drain.note("done", "mail.send", 1)
    assert await refused(gate, rows(1)[0]) == 1
    waiting = [asyncio.create_task(gate.put(rows(100 * each, 10))) for each in range(1, 6)]
    while len(gate._waiting["mail.send"]) < 5:
        await asyncio.sleep(0)
    assert await refused(gate, rows(1)[0]) == pytest.approx(5, rel=0.2)
    gate.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_refusal_at_a_destination_that_is_down_says_when_it_is_tried():
    store, clock, gate = make()
    store.handlers.add(Handler("mail.send", print, "thread", admission="reject"))
    gate._breakers.failed("shop", BreakerPolicy(failures=1, open_seconds=12), clock.now())
    store.key = "shop"
    assert await refused(gate, of_key(1)) == 12
