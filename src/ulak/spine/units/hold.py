"""Holds unfinished work after a restore: it is deferred, far beyond any due time, until a person releases it.

Work that waits in a restored store may long be done, so none of it runs by itself. The hold is in the due times:
every process respects it without knowing about it, and a held job can be cancelled.
"""

from __future__ import annotations

import uuid

from ulak.errors import Conflict
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.rescue import Lost, rescue

sql = Queries("ulak.spine")

HOLD_MILLIS = 100_000_000_000_000  # about 3,170 years: a true due time is at most ten from when it was given
SLICE = 1000


def hold_all(tx: Tx, own: int, poison_deaths: int) -> int:
    """Void every lease (those attempts are uncertain), hold all unfinished jobs, and give the store a new identity.

    Cron times until now count as fired: they were, after the backup was made.
    """
    alive = [label for owner, _, label, _, lease_at in tx.rows(sql.list_owners) if owner != own and lease_at > tx.now]
    if alive:
        raise Conflict(f"a process works on this store ({alive[0]}); stop all of them first")
    for (owner,) in tx.rows(sql.find_leaseholders):
        while rescue(tx, Lost(owner, poison_deaths)):
            pass
    tx.execute(sql.save_meta, name="store_id", value=str(uuid.uuid4()))
    tx.execute(sql.pass_cron, now=tx.now)
    held = tx.execute(sql.hold_jobs, hold=HOLD_MILLIS)
    tx.emit("store.held", 0, "", held)
    return held


def let_go(tx: Tx) -> int:
    """Give a slice of held jobs its true due time back; 0 when none is left."""
    number = tx.execute(sql.release_held, hold=HOLD_MILLIS, n=SLICE)
    if number:
        tx.wake_at(0)  # their true due times may be long past
        tx.emit("store.resumed", 0, "", number)
    return number


def count_held(tx: Tx) -> int:
    row = tx.row(sql.count_held, hold=HOLD_MILLIS)
    return int(row[0]) if row else 0


def store_id(tx: Tx) -> str | None:
    row = tx.row(sql.read_meta, name="store_id")
    return None if row is None else str(row[0])
