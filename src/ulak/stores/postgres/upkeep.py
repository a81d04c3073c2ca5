"""Units of the store's own upkeep: credit that is idle, owed or given back at the end, and the database's owners."""

from __future__ import annotations

from collections.abc import Mapping

from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.stores.postgres.tx import PostgresTx

sql = Queries(__package__)


def pay_debts(tx: Tx, debts: dict[str, int]) -> None:
    """Pay for owed work that exceeded the credit held here, out of the capacity that is free for all."""
    assert isinstance(tx, PostgresTx)
    for pool, number in sorted(debts.items()):
        tx.take_credit(pool, number)


def give_back(tx: Tx, idle: dict[str, int]) -> None:
    assert isinstance(tx, PostgresTx)
    for pool, number in sorted(idle.items()):
        if tx.at_hand(pool) >= number:
            tx.give_credit(pool, number)


def look_at_owners(tx: Tx, owner: int) -> tuple[bool, bool]:
    return tx.row(sql.find_owner, id=owner) is not None, tx.row(sql.find_credit_of_the_dead) is not None


def say_goodbye(tx: Tx, *, owner: int, held: Mapping[str, int]) -> None:
    """Give back all credit, and the node at once: the next process that takes it makes its ids.

    Credit that can't be given back now is found by other processes when the lease has run out.
    """
    assert isinstance(tx, PostgresTx)
    for pool, number in sorted(held.items()):
        if number:
            tx.give_credit(pool, number)
    tx.execute(sql.delete_owner, id=owner)
