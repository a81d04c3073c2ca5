"""Who this process is among those that share the database: its owner row, its node number, its ids."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Any

from psycopg import Cursor

from ulak.errors import Unavailable
from ulak.ids import Ids, made_at
from ulak.spine.query import Queries

sql = Queries("ulak.spine")

# Database-wide advisory locks; the numbers only have to differ from other programs' on the same database.
MEMBER_LOCK = 0x756C616B_0001
RELAY_LOCK = 0x756C616B_0002
RECOUNT_LOCK = 0x756C616B_0004


class Member:
    """Registers once at open, and again when others have taken this process for dead."""

    def __init__(self, lease_seconds: float) -> None:
        self.owner = 0
        self.node = 0
        self.ids = Ids()
        self.lease_millis = round(lease_seconds * 1000)

    def register(self, cursor: Cursor[Any], now: int) -> None:
        """Take the lowest free node, in a transaction of its own."""
        owner = secrets.randbits(62) + 1
        label = f"{socket.gethostname()}:{os.getpid()}"
        with cursor.connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MEMBER_LOCK,))
            row = cursor.execute(
                sql.register_owner.postgres.encode(),
                {"id": owner, "label": label, "now": now, "lease_at": now + self.lease_millis},
            ).fetchone()
            if row is None:
                raise Unavailable(
                    "all 1024 nodes are taken; those of dead processes come free with their lease, try again then"
                )
            newest = cursor.execute(sql.newest_id.postgres.encode()).fetchall()[0][0]
        self.owner, self.node = owner, int(row[0])
        self.ids = Ids(self.node, max(made_at(newest), now - 1))

    def beat(self, cursor: Cursor[Any], now: int) -> None:
        """Renew the lease after an outage, before others look for the dead."""
        cursor.execute(sql.beat_owner.postgres.encode(), {"id": self.owner, "lease_at": now + self.lease_millis})
