"""One relay per store: the process that holds the lease runs it, and every advance of the cursor proves the lease."""

from __future__ import annotations

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)

NAME = "relay"
LEASE_MILLIS = 10_000


def hold(tx: Tx, owner: int) -> bool:
    """Take the lease or renew it; False while another process has it. A store of one process need not wait for it."""
    now = tx.now if tx.multi_process else tx.now + LEASE_MILLIS
    return bool(tx.execute(sql.hold_lease, name=NAME, owner=owner, now=now, until_at=tx.now + LEASE_MILLIS))


def drop(tx: Tx, owner: int) -> None:
    """Let another process have it at once."""
    tx.execute(sql.drop_lease, name=NAME, owner=owner)
