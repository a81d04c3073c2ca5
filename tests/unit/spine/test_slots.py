"""Slots of a key and tokens of a rate: never more than there are, and always what is free."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.bench import Bench, Ears, ids_of
from ulak.spine.query import Query
from ulak.spine.units.rate import refund, spend
from ulak.spine.units.slots import PROMOTE_STRANDED, take_slot
from ulak.stores.sqlite.store import SqliteStore

_STRAND = Query("strand", "UPDATE job SET slot = NULL WHERE state = 2", "", ())


@given(slots=st.integers(1, 20), wanted=st.integers(0, 30), used=st.sets(st.integers(1, 20)))
def test_the_lowest_free_slot_is_given_until_the_key_is_full(slots, wanted, used):
    used = {number for number in used if number <= slots}
    taken = defaultdict(set, {"k": set(used)})
    given_out = [take_slot(taken, "k", slots) for _ in range(wanted)]
    free = [number for number in range(1, slots + 1) if number not in used]
    assert given_out == (free + [None] * wanted)[:wanted]
    assert taken["k"] == used | set(free[:wanted])


@given(held=st.sets(st.integers(1, 10)), slots=st.integers(1, 10))
def test_a_key_whose_bound_was_lowered_gives_nothing_while_it_holds_more(held, slots):
    slot = take_slot(defaultdict(set, {"k": set(held)}), "k", slots)
    assert (slot is None) == (len(held) >= slots)
    assert slot not in held


@pytest.fixture
async def bench(clock):
    store = SqliteStore(None, clock, lambda pool: 1000)
    ears = Ears()
    await store.open(ears)
    yield Bench(store, ears, clock)
    await store.close()


async def test_a_key_with_a_free_slot_and_jobs_behind_is_found(bench: Bench):
    """As a caller's own transaction leaves them: behind, though nobody holds the slot."""
    for key in ("a", "b", "c"):
        await bench.offer(bench.row(key=key), bench.row(key=key))
    holders = await bench.claim()
    await bench.store.write(lambda tx: tx.execute(_STRAND))
    assert await bench.claim() == []
    assert await bench.store.submit(PROMOTE_STRANDED, "") is None
    freed = await bench.claim()
    assert len(freed) == len(holders) == 3
    assert not set(ids_of(freed)) & set(ids_of(holders))


@given(
    rate=st.sampled_from([0.25, 1.0, 4.0, 50.0]),
    steps=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 100), st.booleans()), max_size=30),
)
def test_no_more_than_the_rate_and_one_burst_is_ever_spent(rate, steps):
    budget = Bucket()
    spent = passed = 0
    for millis, wanted, unused in steps:
        passed += millis
        budget.now += millis
        taken, wait = spend(budget, "mail", rate, wanted)
        assert 0 <= taken <= wanted
        assert (wait > 0) == (taken < wanted)
        if unused:
            refund(budget, "mail", taken)
        else:
            spent += taken
        assert spent <= max(rate, 1.0) + rate * passed / 1000 + 1e-6


def test_who_waits_as_long_as_told_gets_a_token():
    budget = Bucket()
    taken, wait = spend(budget, "mail", 0.3, 1)
    assert (taken, wait) == (1, 0.0)
    _, wait = spend(budget, "mail", 0.3, 1)
    budget.now += round(wait * 1000) + 1
    assert spend(budget, "mail", 0.3, 1) == (1, 0.0)


class Bucket:
    """Stands in for a transaction: one row of `budget`."""

    def __init__(self):
        self.now = 0
        self.budget = None

    def execute(self, query, **given):
        if query.name == "open_budget":
            self.budget = self.budget or (given["tokens"], given["now"])
        elif query.name == "save_budget":
            self.budget = (given["tokens"], given["now"])
        else:
            self.budget = (self.budget[0] + given["tokens"], self.budget[1])
        return 1

    def row(self, query, **given):
        return self.budget
