"""The recount: what is free of each pool is put right after a process was lost with the credit that it held."""

from __future__ import annotations

from collections import Counter

from ulak.spine.capacity import live_pool
from ulak.spine.query import Queries
from ulak.stores.postgres.connections import Connection
from ulak.stores.postgres.owner import RECOUNT_LOCK

sql = Queries(__package__)


def recount(connection: Connection) -> None:
    """Count anew how much is free: the bound without its jobs and without the credit of living owners.

    In a transaction of its own: one that admits as well would count jobs whose credit is only written at its commit,
    and keep everybody waiting who wants capacity, because every live job is looked at.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if cursor.execute(sql.lock_recount.postgres.encode(), {"lock": RECOUNT_LOCK}).fetchone() != (True,):
            return  # somebody else is at it
        # Before the count: the credit of who is declared dead in between is counted as lost, or found by the next one.
        cursor.execute(sql.drop_credit.postgres.encode())
        missing: Counter[str] = Counter()
        for pool, number in cursor.execute(sql.count_free.postgres.encode(), {"live": live_pool("")}).fetchall():
            missing[pool] -= int(number)
        for pool, number in sorted(missing.items()):
            if number:
                cursor.execute(sql.correct_free.postgres.encode(), {"pool": pool, "number": number})
