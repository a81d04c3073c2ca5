"""The engine at a glance: processes that work on this store, and timers that come next."""

from __future__ import annotations

from typing import NamedTuple

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.spine")


class WorkerProcess(NamedTuple):
    """A process that works on this store. `lease_at` is when it counts as dead, unless it renews its lease."""

    id: int
    node: int
    label: str
    started_at: int
    lease_at: int


class Timer(NamedTuple):
    id: int
    kind: str
    key: str | None
    due_at: int
    attempt: int


def list_workers(tx: Tx) -> list[WorkerProcess]:
    return [WorkerProcess(*row) for row in tx.rows(sql.list_owners)]


def list_timers(tx: Tx, after: tuple[int, int], limit: int) -> list[Timer]:
    """The nearest first, from behind the timer with this due time and id."""
    due_at, identifier = after
    return [Timer(*row) for row in tx.rows(sql.list_timers, due_at=due_at, id=identifier, n=limit)]
