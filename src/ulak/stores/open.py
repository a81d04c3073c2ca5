"""From an address to a store: `memory:`, `sqlite:///file`, `postgresql://…`."""

from __future__ import annotations

from collections.abc import Callable

from ulak.clock import Clock
from ulak.errors import Misconfigured
from ulak.settings import Spine
from ulak.spine.store import Store
from ulak.stores.migrate import ONLY_SPINE, Lines
from ulak.stores.sqlite.store import SqliteStore


def make_store(
    address: str,
    clock: Clock,
    active: Callable[[str], int],
    spine: Spine,
    *,
    lines: Lines = ONLY_SPINE,
) -> Store:
    """`active` bounds the active jobs of a kind; `spine.capacity` all that live."""

    def live(_: str) -> int:
        return spine.capacity

    if address == "memory:":
        return SqliteStore(None, clock, active, live=live, lines=lines)
    if address.startswith("sqlite:///"):
        return SqliteStore(
            address.removeprefix("sqlite:///"), clock, active, spine.ballast_mb, spine.min_free_mb, live, lines
        )
    if address.startswith(("postgresql://", "postgres://")):
        # The driver takes a while to load, and an embedded Ulak never needs it.
        from ulak.stores.postgres.store import PostgresStore

        return PostgresStore(address, clock, active, spine.lease_seconds, live, lines=lines)
    # The address is not shown: in an unknown form, any part of it may be a password.
    raise Misconfigured("no such kind of store; its address begins with memory:, sqlite:/// or postgresql://")
