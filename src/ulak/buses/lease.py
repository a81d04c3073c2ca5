"""One relay per store: the process that holds the lease runs it, and every advance of the cursor proves the lease."""

from __future__ import annotations

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

NAME = "relay"
LEASE_MILLIS = 10_000


def hold(tx: Tx, owner: int) -> bool:
    """Take or renew the lease; return False while another process has it. On SQLite nobody else can have it."""
    now = tx.now if tx.multi_process else tx.now + LEASE_MILLIS
    return bool(tx.execute(sql.hold_lease, name=NAME, owner=owner, now=now, until_at=tx.now + LEASE_MILLIS))


def drop(tx: Tx, owner: int) -> None:
    """Give the lease up, so that another process can take it at once."""
    tx.execute(sql.drop_lease, name=NAME, owner=owner)
