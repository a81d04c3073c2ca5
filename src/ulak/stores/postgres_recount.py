"""The recount: what is free of each pool is put right after a process was lost with the credit that it held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ulak.spine.query import Queries
from ulak.stores.postgres_member import RECOUNT_LOCK
from ulak.stores.postgres_wires import Connection

sql = Queries("ulak.spine")


def recount(connection: Connection, pool_of: Callable[[str], str]) -> None:
    """What is free is the bound without live jobs and without what living owners hold.

    In a transaction of its own: one that admits as well would count jobs whose credit is only written at its commit,
    and keep everybody waiting who wants room, because every live job is looked at.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if cursor.execute(sql.lock_recount.postgres.encode(), {"lock": RECOUNT_LOCK}).fetchone() != (True,):
            return  # somebody else is at it
        # Before the count: the credit of who is declared dead in between is counted as lost, or found by the next one.
        cursor.execute(sql.drop_credit.postgres.encode())
        missing: Counter[str] = Counter()
        for what, name, number in cursor.execute(sql.count_room.postgres.encode()).fetchall():
            missing[pool_of(name) if what == "live" else name] -= int(number)
        for pool, number in sorted(missing.items()):
            if number:
                cursor.execute(sql.correct_room.postgres.encode(), {"pool": pool, "number": number})
