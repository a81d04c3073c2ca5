"""Rates per kind as a token bucket in the store: exact for all instances, touched only by kinds that have one."""

from __future__ import annotations

from collections.abc import Collection

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.spine")


def lock_budgets(tx: Tx, kinds: Collection[str]) -> None:
    """Before several are spent, in whatever order: processes that lock them in two orders wait for one another."""
    if len(kinds) > 1:
        tx.rows_if_shared(sql.lock_budgets, kinds=list(kinds))


def spend(tx: Tx, kind: str, rate_per_second: float, wanted: int) -> tuple[int, float]:
    """Take up to `wanted` tokens; answers (taken, seconds until the next token when none is left)."""
    burst = max(rate_per_second, 1.0)
    tx.execute(sql.open_budget, kind=kind, tokens=burst, now=tx.now)
    row = tx.row(sql.read_budget, kind=kind)
    assert row is not None  # opened above, in this transaction
    tokens, filled_at = row
    now = max(tx.now, filled_at)  # who waited for the row has an older time, and must not fill the same moment twice
    tokens = min(burst, tokens + (now - filled_at) / 1000 * rate_per_second)
    taken = min(wanted, int(tokens))
    tokens -= taken
    tx.execute(sql.save_budget, kind=kind, tokens=tokens, now=now)
    return taken, 0.0 if taken == wanted else (1 - min(tokens, 0.999)) / rate_per_second


def refund(tx: Tx, kind: str, tokens: int) -> None:
    """Give back what was taken but not used."""
    tx.execute(sql.refund_budget, kind=kind, tokens=tokens)
