"""From an address to a store: `memory:`, `sqlite:///file`, `postgresql://…`."""

from __future__ import annotations

from collections.abc import Callable

from ulak.clock import Clock
from ulak.errors import Misconfigured
from ulak.settings import Spine
from ulak.spine.store import Store
from ulak.stores.sqlite import SqliteStore


def make_store(
    address: str,
    clock: Clock,
    capacity: Callable[[str], int],
    spine: Spine,
    pool_of: Callable[[str], str] = str,
    *,
    works: bool = True,
) -> Store:
    if address == "memory:":
        return SqliteStore(None, clock, capacity, pool_of=pool_of)
    if address.startswith("sqlite:///"):
        return SqliteStore(
            address.removeprefix("sqlite:///"), clock, capacity, spine.ballast_mb, spine.min_free_mb, pool_of
        )
    if address.startswith(("postgresql://", "postgres://")):
        # The driver takes a while to load, and an embedded Ulak never needs it.
        from ulak.stores.postgres import PostgresStore

        return PostgresStore(address, clock, capacity, spine.lease_seconds, pool_of, works=works)
    # It is not shown: what is written in a form that we don't know may be all password.
    raise Misconfigured("no such kind of store; its address begins with memory:, sqlite:/// or postgresql://")
