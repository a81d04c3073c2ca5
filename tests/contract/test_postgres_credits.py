"""Credit in memory has one spender: who does not admit neither spends it nor gives it away."""

from __future__ import annotations

from collections import Counter

import pytest

from ulak.clock import ManualClock
from ulak.spine.store import Verb, WriterQueue
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.upkeep import give_back

BLOCK = 10  # an eighth of the bound


@pytest.fixture
def capacity() -> Credits:
    found = Credits(lambda _: 8 * BLOCK, None, ManualClock())
    found.available["mail"] = 4 * BLOCK
    return found


def test_a_commit_that_admits_gives_back_all_but_a_block(capacity):
    assert capacity.wish("mail", -1, admits=True) == -(3 * BLOCK - 1)


@pytest.mark.parametrize(("brought", "given"), [(0, 0), (-3, 0), (5, 5), (7 * BLOCK, 7 * BLOCK)])
def test_a_commit_that_only_settles_gives_back_no_more_than_it_brings(capacity, brought, given):
    assert capacity.wish("mail", brought, admits=False) == -given


def test_what_was_left_in_the_database_is_asked_for_and_no_more(capacity):
    capacity.note_left("mail", 3)
    assert capacity.may_ask("mail", 3)
    assert not capacity.may_ask("mail", 4)
    capacity.ask_again()
    assert capacity.may_ask("mail", 4)


@pytest.mark.postgres
async def test_a_unit_that_settles_and_admits_leases_its_own_capacity(opened, database):
    async with opened(database, bounds={"mail": 80}) as bench:
        await bench.add()  # of a block of ten, nine are left in memory
        admit = Verb(WriterQueue.SETTLE, lambda tx, items: [tx.admit("mail", number) for number in items])
        before = bench.store.capacity.held("mail")
        assert await bench.store.submit(admit, 4) is None
        assert bench.store.capacity.held("mail") == before + BLOCK - 4


@pytest.mark.postgres
async def test_what_is_lent_to_a_caller_is_not_given_back_as_idle_in_the_same_commit(opened, database):
    async with opened(database, bounds={"mail": 80}) as bench:
        await bench.add()  # of a block of ten, nine are left in memory

        def lend_and_give_back(tx):
            assert tx.lend(Counter(mail=5)) is None
            give_back(tx, {"mail": 9})

        await bench.store.write(lend_and_give_back)
        assert bench.store.capacity.held("mail") == 4


@pytest.mark.postgres
async def test_what_is_lent_to_a_caller_is_not_given_back_as_too_much_in_the_same_commit(opened, database):
    async with opened(database, bounds={"mail": 80}) as bench:
        await bench.add()  # of a block of ten, nine are left in memory

        def take_and_lend(tx):
            tx.take_credit("mail", 31)
            assert tx.lend(Counter(mail=35)) is None

        await bench.store.write(take_and_lend)
        assert bench.store.capacity.held("mail") == 5
