"""This process among those that share the database: its owner row, its node number, its ids."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Any

from psycopg import Cursor

from ulak.errors import Unavailable
from ulak.ids import FOREVER, NODE_REST_MILLIS, Ids, made_at, new_mark
from ulak.spine.query import Queries

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

# Database-wide advisory locks; the numbers only have to differ from other programs' on the same database.
OWNER_LOCK = 0x756C616B_0001
RELAY_LOCK = 0x756C616B_0002
RECOUNT_LOCK = 0x756C616B_0004


class Owner:
    """Registers once at open, and again when others have taken this process for dead.

    A clock that a test moves by hand leaps hours in which nobody else does anything: such an owner's ids don't expire.
    """

    def __init__(self, lease_seconds: float, *, by_hand: bool) -> None:
        self.id = 0
        self.node = 0
        self.ids = Ids()
        self.lease_millis = round(lease_seconds * 1000)
        self._first_good_until = FOREVER if by_hand else 0
        self._found_dead = 0

    def register(self, cursor: Cursor[Any], now: int) -> None:
        """Take the lowest free node, in a transaction of its own. Nodes of the dead are free when they have rested."""
        owner = secrets.randbits(62) + 1
        label = f"{socket.gethostname()}:{os.getpid()}"
        with cursor.connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (OWNER_LOCK,))
            cursor.execute(sql.forget_owners.postgres.encode(), {"before": now - NODE_REST_MILLIS})
            row = cursor.execute(
                sql.register_owner.postgres.encode(),
                {"id": owner, "label": label, "now": now, "lease_at": now + self.lease_millis},
            ).fetchone()
            if row is None:
                raise Unavailable(
                    "all 1024 nodes are taken; those of the dead come free after a minute of rest, try again then"
                )
            newest = cursor.execute(sql.newest_id.postgres.encode()).fetchall()[0][0]
            cursor.execute(sql.keep_mark.postgres.encode(), {"mark": str(new_mark())})
            mark = cursor.execute(sql.read_mark.postgres.encode()).fetchall()[0][0]
        ids = Ids(int(row[0]), max(made_at(newest), now - 1), self._first_good_until, int(mark))
        ids.hold(now + self.lease_millis)
        # The ids first: a thread that reads the new name then finds the new ids.
        self.ids, self.node, self.id = ids, int(row[0]), owner

    @property
    def taken_for_dead(self) -> bool:
        return self._found_dead == self.id

    def beat(self, cursor: Cursor[Any], now: int) -> None:
        """Renew the lease after an outage, before others look for the dead; a lease that is lost stays so."""
        owner, lease_at = self.id, now + self.lease_millis
        ids = self.ids
        if cursor.execute(spine_sql.beat_owner.postgres.encode(), {"id": owner, "lease_at": lease_at}).rowcount:
            ids.hold(lease_at)
        else:
            self._found_dead = owner
