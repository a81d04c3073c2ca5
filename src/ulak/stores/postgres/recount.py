"""The recount: corrects the free capacity of each pool after a process was lost with the credit that it held."""

from __future__ import annotations

from collections import Counter

from ulak.spine.capacity import live_pool
from ulak.spine.query import Queries
from ulak.stores.postgres.connections import Connection
from ulak.stores.postgres.owner import RECOUNT_LOCK

sql = Queries(__package__)


def recount(connection: Connection) -> None:
    """Recount the free capacity: the bound less its jobs and less the credit of living owners.

    In a transaction of its own: one that also admits would count jobs whose credit is written at its commit. And as it
    looks at every live job, callers that want capacity would wait for it.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if cursor.execute(sql.lock_recount.postgres.encode(), {"lock": RECOUNT_LOCK}).fetchone() != (True,):
            return  # somebody else is at it
        # Before the count: credit of an owner that dies in between is counted as lost, or found by the next recount.
        cursor.execute(sql.drop_credit.postgres.encode())
        missing: Counter[str] = Counter()
        for pool, number in cursor.execute(sql.count_free.postgres.encode(), {"live": live_pool("")}).fetchall():
            missing[pool] -= int(number)
        for pool, number in sorted(missing.items()):
            if number:
                cursor.execute(sql.correct_free.postgres.encode(), {"pool": pool, "number": number})
