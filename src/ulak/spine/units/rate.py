"""Rates per kind as a token bucket in the store: exact for all instances, touched only by kinds that have one."""

from __future__ import annotations

from collections.abc import Collection

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.spine")


def lock_budgets(tx: Tx, kinds: Collection[str]) -> None:
    """Lock several rates in one order before they are spent: otherwise processes could wait for one another."""
    if len(kinds) > 1:
        tx.rows_if_shared(sql.lock_budgets, kinds=list(kinds))


def spend(tx: Tx, kind: str, rate_per_second: float, wanted: int) -> tuple[int, float]:
    """Take up to `wanted` tokens; return (taken, seconds until the next token when none is left)."""
    burst = max(rate_per_second, 1.0)
    tx.execute(sql.open_budget, kind=kind, tokens=burst, now=tx.now)
    row = tx.row(sql.read_budget, kind=kind)
    assert row is not None  # opened above, in this transaction
    tokens, filled_at = row
    now = max(tx.now, filled_at)  # after waiting for the row our time is older, and must not add the same tokens twice
    tokens = min(burst, tokens + (now - filled_at) / 1000 * rate_per_second)
    taken = min(wanted, int(tokens))
    tokens -= taken
    tx.execute(sql.save_budget, kind=kind, tokens=tokens, now=now)
    return taken, 0.0 if taken == wanted else (1 - min(tokens, 0.999)) / rate_per_second


def refund(tx: Tx, kind: str, tokens: int) -> None:
    """Give back tokens that were taken but not used."""
    tx.execute(sql.refund_budget, kind=kind, tokens=tokens)
